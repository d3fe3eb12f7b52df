// A load that several wait for is stopped only when none of them waits any more.
#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "core/error/stopped.h"
#include "core/memory/memory_budget.h"
#include "core/store/model_cache.h"
#include "core/sync/cancellation.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"

namespace perceptrond {
namespace {

using testing::ReasonOf;

class StoppedLoad : public ::testing::Test {
 protected:
  // Loads nothing: says that it is done, or that it was stopped.
  absl::StatusOr<std::shared_ptr<Model>> Load() {
    token_ = CurrentToken();
    if (++loads_ > 1) return absl::NotFoundError("again");
    begun_.Notify();
    go_.WaitForNotification();
    return KeepGoing() ? absl::NotFoundError("done") : StoppedError();
  }
  absl::Status Acquire(const CancellationToken& token) {
    const CancellationScope scope(&token);
    return cache_.Acquire("models/m").status();
  }
  // Whether the load would go on now.
  bool GoesOn() const { return token_.load()->reason() == StopReason::kNone; }

  std::atomic<int> loads_ = 0;
  std::atomic<const CancellationToken*> token_ = nullptr;
  absl::Notification begun_;
  absl::Notification go_;
  MemoryBudget budget_{1 << 20, 1 << 18};
  ModelCache cache_{budget_, 1 << 20, [this](absl::string_view) { return Load(); }, [] {}};
};

TEST_F(StoppedLoad, GoesOnForOthersAfterItsOwnCallIsOver) {
  CancellationToken own;
  const CancellationToken other;
  absl::Status own_status;
  absl::Status other_status;
  std::thread first([&] { own_status = Acquire(own); });
  begun_.WaitForNotification();
  own.Cancel();
  EXPECT_FALSE(GoesOn());
  std::thread second([&] { other_status = Acquire(other); });
  while (!GoesOn()) std::this_thread::yield();
  go_.Notify();
  first.join();
  second.join();
  EXPECT_EQ(own_status.message(), "done");
  EXPECT_EQ(other_status.message(), "again");
}

TEST_F(StoppedLoad, EndsOnceNobodyWaits) {
  CancellationToken own;
  CancellationToken other;
  absl::Status own_status;
  absl::Status other_status;
  std::thread first([&] { own_status = Acquire(own); });
  begun_.WaitForNotification();
  own.Cancel();
  std::thread second([&] { other_status = Acquire(other); });
  while (!GoesOn()) std::this_thread::yield();
  other.Cancel();
  // It does not wait for the load.
  second.join();
  EXPECT_EQ(ReasonOf(other_status), "CANCELLED");
  EXPECT_FALSE(GoesOn());
  go_.Notify();
  first.join();
  EXPECT_EQ(ReasonOf(own_status), "CANCELLED");
}

class StoppedStore : public testing::StoreTest {};

TEST_F(StoppedStore, ACallThatIsOverDeletesNothing) {
  Create("models/m");
  Open(Store::Options());
  CancellationToken token;
  token.Cancel();
  {
    const CancellationScope scope(&token);
    EXPECT_EQ(ReasonOf(store_->Delete("models/m", "", false)), "CANCELLED");
  }
  EXPECT_OK(store_->Acquire("models/m").status());
}

TEST_F(StoppedStore, ASearchThatIsOverEnds) {
  Create("models/m");
  CancellationToken token;
  token.Cancel();
  const CancellationScope scope(&token);
  EXPECT_EQ(ReasonOf(store_->List("", 10).status()), "CANCELLED");
}

}  // namespace
}  // namespace perceptrond
