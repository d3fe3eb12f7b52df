#include "tests/support/fleets.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "tests/support/status.h"

namespace perceptrond::testing {

NatsCluster& SharedNats(int servers) {
  static std::map<int, NatsCluster> clusters;
  return clusters.try_emplace(servers, servers).first->second;
}

std::string NewFleet() {
  static int number = 0;
  return absl::StrCat("fleet", ++number);
}

std::unique_ptr<JetStreamJournal> OpenFleet(const NatsCluster& cluster, const std::string& fleet) {
  JetStreamJournal::Options options;
  options.connection.servers = cluster.urls();
  options.fleet = fleet;
  options.partitions = 2;
  options.replicas = cluster.size();
  absl::StatusOr<std::unique_ptr<JetStreamJournal>> journal = JetStreamJournal::Open(options);
  while (absl::IsUnavailable(journal.status()) || absl::IsResourceExhausted(journal.status()))
    journal = JetStreamJournal::Open(options);
  EXPECT_OK(journal.status());
  return journal.ok() ? *std::move(journal) : nullptr;
}

}  // namespace perceptrond::testing
