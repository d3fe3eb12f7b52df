// Servers of a fleet as processes of their own, over one PostgreSQL.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/support/own_port.h"
#include "tests/support/postgres_server.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {

struct Member : Api {
  Member(const std::string& data, const std::vector<std::string>& flags) : process(data, flags) {
    Connect(process.address());
  }
  ServerProcess process;
};

class FleetProcesses : public ::testing::Test {
 protected:
  // The flags of perceptrond that name the fleet: its servers', and those of copies.
  std::string FleetFlags() const {
    return absl::StrCat(" --fleet ", fleet_, " --fleet-partitions 1 --fleet-timeout 1s");
  }
  // In the quotes of a shell.
  std::string url() const { return absl::StrCat("'", database_.uri(), "'"); }
  // Starts a member with more flags. The fleet has one partition: one server writes all models.
  Member& Start(std::vector<std::string> more = {}) {
    const std::vector<std::string> flags = {"--journal",
                                            database_.uri(),
                                            "--fleet",
                                            fleet_,
                                            "--fleet-timeout",
                                            "1s",
                                            "--fleet-partitions",
                                            "1",
                                            "--fleet-address",
                                            absl::StrCat("127.0.0.1:", OwnPort())};
    fleet_addresses_.push_back(flags.back());
    more.insert(more.end(), flags.begin(), flags.end());
    return *members_.emplace_back(
        std::make_unique<Member>(absl::StrCat(dir_.path(), "/member", members_.size()), more));
  }
  // A member that says it writes all models. Another one may, soon after.
  Member& AwaitWriter(const std::string& token = "") {
    const auto writes = [&](const auto& member) {
      return Metric(member->process, "perceptrond_fleet_partitions_written", token) == "1";
    };
    auto found = members_.end();
    WaitUntil([&] {
      return (found = std::find_if(members_.begin(), members_.end(), writes)) != members_.end();
    });
    return found == members_.end() ? *members_.front() : **found;
  }
  Member& OtherThan(const Member& one) const {
    return members_[0].get() == &one ? *members_[1] : *members_[0];
  }
  std::string RunOnFleet(int exit_code, const std::string& arguments) const {
    return RunToEnd(exit_code, arguments + FleetFlags());
  }

  const TempDir dir_;
  const PostgresServer database_;
  const std::string fleet_ = "f";
  std::vector<std::unique_ptr<Member>> members_;
  // The members' fleet addresses.
  std::vector<std::string> fleet_addresses_;
};

}  // namespace perceptrond::testing
