// A model that follows another server's: what it takes and what it does not. replay_test.cc: it is equal to the bit.
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

using testing::Message;
using testing::Space;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

// A server that learns, and what another one has of its model.
class Following : public ::testing::Test {
 protected:
  Following() {
    auto journal = std::make_unique<MemoryJournal>(MemoryJournal::Options{.tail_bytes = 64 << 20});
    others_ = journal->OpenAgain();
    store_ = std::make_unique<Store>(std::move(journal), Store::Options());
  }
  void Create(const v1::Model& settings) {
    ASSERT_OK(store_->Create(settings, "", false).status());
    header_ = others_->Find(settings.name()).value();
  }
  std::shared_ptr<Model> Load() { return Model::Load(header_, *others_, ModelLimits()).value(); }
  std::unique_ptr<JournalTail> Tail() {
    return others_->Tail(0, others_->LastSequence(0).value()).value();
  }
  // Applies everything that is committed.
  static void CatchUp(JournalTail& tail, Model& model) {
    while (true) {
      const auto entries = tail.Next(absl::ZeroDuration());
      ASSERT_OK(entries.status());
      if (entries->empty()) return;
      for (const SequencedEntry& entry : *entries) ASSERT_OK(Follow(entry.entry, model.core()));
    }
  }

  std::unique_ptr<MemoryJournal> others_;
  std::unique_ptr<Store> store_;
  storage::ModelHeader header_;
};

TEST_F(Following, ThatMissedRecordsSaysSoAndChangesNothing) {
  testing::TrafficOptions traffic;
  ASSERT_NO_FATAL_FAILURE(Create(testing::DenseSettings("models/m", traffic.dimension)));
  const std::shared_ptr<Model> follower = Load();
  const auto messages = MakeTraffic(1, traffic);
  for (const Message& message : messages)
    ASSERT_OK(SendMessage(*store_, "models/m", Space::kDense, message).status);
  const std::shared_ptr<Model> writer = store_->Acquire("models/m").value();
  ASSERT_GT(writer->revision(), 3U);
  JournalEntry late;
  late.records.emplace_back().set_first_revision(3);
  late.records.back().add_labels(1);
  EXPECT_TRUE(absl::IsOutOfRange(Follow(late, follower->core())));
  EXPECT_EQ(follower->revision(), 0U);
  EXPECT_EQ(StateBytes(*Load()), StateBytes(*writer));
}

TEST_F(Following, TakesNoUpdateWhoseArithmeticItDoesNotKnow) {
  testing::TrafficOptions traffic;
  ASSERT_NO_FATAL_FAILURE(Create(testing::DenseSettings("models/m", traffic.dimension)));
  const std::unique_ptr<JournalTail> tail = Tail();
  const std::shared_ptr<Model> follower = Load();
  for (const Message& message : MakeTraffic(1, traffic))
    ASSERT_OK(SendMessage(*store_, "models/m", Space::kDense, message).status);
  auto entries = tail->Next(absl::ZeroDuration());
  ASSERT_OK(entries.status());
  ASSERT_FALSE(entries->empty());
  JournalEntry& first = entries->front().entry;
  ASSERT_FALSE(first.records.empty());
  first.records.back().set_arithmetic_version(2);
  const std::string state = StateBytes(*follower);
  const absl::Status refused = Follow(first, follower->core());
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  if (first.records.size() == 1) {
    EXPECT_EQ(StateBytes(*follower), state);
  }
}

TEST_F(Following, AnEntryThatItHasAlreadyChangesNothing) {
  testing::TrafficOptions traffic;
  ASSERT_NO_FATAL_FAILURE(Create(testing::DenseSettings("models/m", traffic.dimension)));
  const std::unique_ptr<JournalTail> tail = Tail();
  for (const Message& message : MakeTraffic(1, traffic))
    ASSERT_OK(SendMessage(*store_, "models/m", Space::kDense, message).status);
  // Loaded after all of them were committed.
  const std::shared_ptr<Model> follower = Load();
  const std::string state = StateBytes(*follower);
  ASSERT_NO_FATAL_FAILURE(CatchUp(*tail, *follower));
  EXPECT_EQ(StateBytes(*follower), state);
  EXPECT_EQ(follower->ledger().examples(),
            store_->Acquire("models/m").value()->ledger().examples());
}

}  // namespace
}  // namespace perceptrond::follow_test
