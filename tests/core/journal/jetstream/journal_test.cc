// The journal of a fleet on real servers.
#include "core/journal/jetstream/jetstream_journal.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/journal_openers.h"
#include "tests/core/journal/tail_conformance.h"
#include "tests/support/fleets.h"

namespace perceptrond {
namespace {

std::unique_ptr<Journal> OpenOne(const std::string& /*directory*/) {
  std::unique_ptr<Journal> journal =
      testing::OpenFleet(testing::SharedNats(1), testing::NewFleet());
  for (uint32_t i = 0; i < journal->partitions(); ++i)
    EXPECT_OK(journal->TakeOver(i, "here", journal->LastSequence(i).value()).status());
  return journal;
}

INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance,
                         ::testing::Values(Home{"JetStream", OpenOne, true}),
                         [](const auto& info) { return info.param.name; });

std::vector<std::unique_ptr<Journal>> OpenOn(int servers, int openers) {
  std::vector<std::unique_ptr<Journal>> journals;
  const std::string fleet = testing::NewFleet();
  for (int i = 0; i < openers; ++i)
    journals.push_back(testing::OpenFleet(testing::SharedNats(servers), fleet));
  return journals;
}

INSTANTIATE_TEST_SUITE_P(
    Homes, Openers,
    ::testing::Values(
        SharedHome{"JetStreamOnOneServer", [](int openers) { return OpenOn(1, openers); }},
        SharedHome{"JetStreamOnThreeServers", [](int openers) { return OpenOn(3, openers); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond
