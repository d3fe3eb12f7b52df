#include "core/store/committers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/traffic.h"

namespace perceptrond::testing {
namespace {

constexpr uint32_t kPartitions = 4;

// Commits of one partition wait.
class StalledJournal final : public JournalDecorator {
 public:
  StalledJournal(std::shared_ptr<Journal> base, uint32_t stalled)
      : JournalDecorator(std::move(base)), stalled_(stalled) {}

  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    for (const JournalEntry& entry : entries)
      EXPECT_EQ(PartitionOf(entry.model_id), PartitionOf(entries.front().model_id));
    if (PartitionOf(entries.front().model_id) == stalled_) released.WaitForNotification();
    return JournalDecorator::Commit(entries, options);
  }

  absl::Notification released;

 private:
  const uint32_t stalled_;
};

TEST(CommittersTest, APartitionThatDoesNotAnswerHoldsUpNoOther) {
  auto owned = std::make_unique<StalledJournal>(
      std::make_shared<MemoryJournal>(MemoryJournal::Options{.partitions = kPartitions}), 1);
  StalledJournal& journal = *owned;
  Store store(std::move(owned), Store::Options());
  absl::Notification written;
  for (uint32_t i = 0; i < kPartitions; ++i) {
    const std::string name = absl::StrCat("models/m", i);
    ASSERT_OK(store.Create(DenseSettings(name, 2), "", false).status());
  }
  const auto submit = [&](const std::string& name, Committer::Done done) {
    const std::shared_ptr<Model> model = store.Acquire(name).value();
    const auto producer = model->ledger().FindProducer("p");
    ASSERT_OK(producer.status());
    LearnCall call;
    const Columns row = Columns().AddDense({1, 2}, 1);
    call.batch = row.batch();
    call.producer = producer->get();
    LearnOutcome outcome;
    {
      MutexLock turn(&(*producer)->turn);
      ASSERT_OK(model->Learn(call, outcome));
    }
    store.committer().Submit(model, std::move(done));
  };
  std::string stalled;
  for (uint32_t i = 0; i < kPartitions; ++i) {
    const std::string name = absl::StrCat("models/m", i);
    if (journal.PartitionOf(store.catalogue().Find(name).value().id()) == 1) stalled = name;
  }
  ASSERT_NE(stalled, "");
  submit(stalled, [&](const absl::Status& status) {
    EXPECT_OK(status);
    written.Notify();
  });
  for (uint32_t i = 0; i < kPartitions; ++i) {
    const std::string name = absl::StrCat("models/m", i);
    if (name == stalled) continue;
    absl::Notification done;
    submit(name, [&](const absl::Status& status) {
      EXPECT_OK(status);
      done.Notify();
    });
    done.WaitForNotification();
  }
  EXPECT_FALSE(written.HasBeenNotified());
  EXPECT_GT(store.committer().oldest_wait(), absl::ZeroDuration());
  EXPECT_EQ(store.committer().commits(), kPartitions - 1);
  journal.released.Notify();
  written.WaitForNotification();
  EXPECT_EQ(store.committer().commits(), kPartitions);
}

}  // namespace
}  // namespace perceptrond::testing
