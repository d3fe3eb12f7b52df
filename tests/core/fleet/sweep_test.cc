// A server has its journal delete the remains of failed deletions.
#include <atomic>
#include <memory>
#include <utility>

#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

// Counts, and fails.
class SweptJournal final : public testing::JournalDecorator {
 public:
  SweptJournal(std::shared_ptr<Journal> base, std::shared_ptr<std::atomic<int>> sweeps)
      : JournalDecorator(std::move(base)), sweeps_(std::move(sweeps)) {}
  absl::Status Sweep() override {
    ++*sweeps_;
    return absl::UnavailableError("no answer");
  }

 private:
  // Servers sweep until the fixture ends, after the test's own variables.
  const std::shared_ptr<std::atomic<int>> sweeps_;
};

TEST_F(FleetTest, AServerSweepsOnceItHasTakenPartitionsOver) {
  servers_.reserve(2);
  const auto first = std::make_shared<std::atomic<int>>(0);
  const auto second = std::make_shared<std::atomic<int>>(0);
  Start(std::make_unique<SweptJournal>(journal_.OpenAgain(), first));
  PassUntil([&] { return WrittenOnce() && *first > 0; });
  Server& next = Start(std::make_unique<SweptJournal>(journal_.OpenAgain(), second));
  servers_.front().store.reset();
  PassUntil([&] { return Written(next) == kPartitions && *second > 0; });
}

TEST_F(FleetTest, AServerSweepsFromTimeToTime) {
  const auto sweeps = std::make_shared<std::atomic<int>>(0);
  fleet_options_.sweep_interval = absl::Milliseconds(1);
  Start(std::make_unique<SweptJournal>(journal_.OpenAgain(), sweeps));
  // More often than it takes partitions over.
  PassUntil([&] { return *sweeps > static_cast<int>(kPartitions); });
}

}  // namespace
}  // namespace perceptrond::fleet_test
