// The entries that a model which follows another server's takes. replay_test.cc shows that it is equal to the bit.
#include <memory>
#include <string>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/model/model.h"
#include "core/store/store.h"
#include "gtest/gtest.h"
#include "tests/support/traffic.h"

namespace perceptrond::follow_test {
namespace {

using testing::StateBytes;

// A server has learned a model, and another one follows its journal.
class Following : public ::testing::Test {
 protected:
  Following() {
    auto journal = std::make_unique<MemoryJournal>(MemoryJournal::Options{.tail_bytes = 64 << 20});
    others_ = journal->OpenAgain();
    store_ = std::make_unique<Store>(std::move(journal), Store::Options());
    const testing::TrafficOptions traffic;
    EXPECT_OK(
        store_->Create(testing::DenseSettings("models/m", traffic.dimension), "", false).status());
    tail_ = others_->Tail(0, others_->LastSequence(0).value()).value();
    follower_ = Load();
    for (const testing::Message& message : MakeTraffic(1, traffic))
      EXPECT_OK(SendMessage(*store_, "models/m", testing::Space::kDense, message).status);
    EXPECT_GT(writer()->revision(), 3U);
  }
  std::shared_ptr<Model> writer() { return store_->Acquire("models/m").value(); }
  std::shared_ptr<Model> Load() {
    return Model::Load(others_->Find("models/m").value(), *others_, ModelLimits()).value();
  }

  std::unique_ptr<MemoryJournal> others_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<JournalTail> tail_;
  // Loaded before anything was learned.
  std::shared_ptr<Model> follower_;
};

TEST_F(Following, ThatMissedRecordsSaysSoAndChangesNothing) {
  JournalEntry late;
  late.records.emplace_back().set_first_revision(3);
  late.records.back().add_labels(1);
  EXPECT_TRUE(absl::IsOutOfRange(Follow(late, follower_->core())));
  EXPECT_EQ(follower_->revision(), 0U);
  EXPECT_EQ(StateBytes(*Load()), StateBytes(*writer()));
}

TEST_F(Following, TakesNoUpdateWhoseArithmeticItDoesNotKnow) {
  auto entries = tail_->Next(absl::ZeroDuration());
  ASSERT_OK(entries.status());
  ASSERT_FALSE(entries->empty());
  JournalEntry& first = entries->front().entry;
  ASSERT_EQ(first.records.size(), 1U);
  first.records.back().set_arithmetic_version(2);
  const std::string state = StateBytes(*follower_);
  const absl::Status refused = Follow(first, follower_->core());
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(StateBytes(*follower_), state);
}

TEST_F(Following, AnEntryThatItHasAlreadyChangesNothing) {
  const std::shared_ptr<Model> follower = Load();
  const std::string state = StateBytes(*follower);
  while (true) {
    const auto entries = tail_->Next(absl::ZeroDuration());
    ASSERT_OK(entries.status());
    if (entries->empty()) break;
    for (const SequencedEntry& entry : *entries) ASSERT_OK(Follow(entry.entry, follower->core()));
  }
  EXPECT_EQ(StateBytes(*follower), state);
  EXPECT_EQ(follower->ledger().examples(), writer()->ledger().examples());
}

}  // namespace
}  // namespace perceptrond::follow_test
