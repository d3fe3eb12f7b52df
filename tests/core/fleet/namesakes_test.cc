// Servers that have one address by mistake.
#include <atomic>

#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

class NamesakeServersTest : public FleetTest {
 protected:
  // Reports of another server with the same address.
  struct Reports {
    std::atomic<int> yields = 0;
    std::atomic<int> keeps = 0;
  };

  Server& StartAt(const std::string& address, Reports& reports) {
    Store::Options options;
    options.on_namesake = [&reports](bool yields, const std::string& /*client_address*/) {
      ++(yields ? reports.yields : reports.keeps);
    };
    return Start(journal_.OpenAgain(), options, address);
  }

  Reports first_reports_;
  Reports second_reports_;
};

TEST_F(NamesakeServersTest, TheOneThatStartedLaterWritesNothingUntilTheOtherHasEnded) {
  servers_.reserve(2);
  Server& first = StartAt("one", first_reports_);
  PassUntil([&] { return WrittenOnce(); });
  Server& second = StartAt("one", second_reports_);
  PassUntil([&] { return second_reports_.yields > 0 && first_reports_.keeps > 0; });
  // It may have been given partitions before.
  PassUntil([&] { return Written(first) == kPartitions && Written(second) == 0; });
  EXPECT_TRUE(first.store->fleet()->can_commit());
  EXPECT_FALSE(second.store->fleet()->can_commit());
  first.store.reset();
  PassUntil([&] { return Written(second) == kPartitions; });
  EXPECT_TRUE(second.store->fleet()->can_commit());
  EXPECT_EQ(first_reports_.yields + second_reports_.keeps, 0);
}

}  // namespace
}  // namespace perceptrond::fleet_test
