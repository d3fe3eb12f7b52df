// Faults under the journal: nothing acknowledged is lost, nothing unacknowledged is half in, and
// the model is usable again.
#include <bit>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/faulty_journal.h"
#include "tests/support/recording_journal.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::FaultyJournal;
using testing::Message;
using testing::ReasonOf;
using testing::Send;
using testing::Space;
using testing::StateBytes;
using Call = FaultyJournal::Call;
using Fate = FaultyJournal::Fate;

class Faults : public ::testing::Test {
 protected:
  void Open(FaultyJournal::Plan plan, uint64_t snapshot_bytes = uint64_t{1} << 40) {
    store_.reset();
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    store_ =
        std::make_unique<Store>(std::make_unique<FaultyJournal>(base_, std::move(plan)), options);
  }
  // One kind of call fails once.
  void OpenFailing(Call call, uint64_t number, Fate fate) {
    Open([=](Call c, uint64_t n) { return c == call && n == number ? fate : Fate::kWorks; });
  }

  const std::shared_ptr<Journal> base_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  const Columns mistake_ = Columns().AddDense({1, 2}, 1);
};

TEST_F(Faults, AFailedCommitIsUnavailableToEverybodyWhoWaits) {
  Open([](Call call, uint64_t) { return call == Call::kCommit ? Fate::kFails : Fate::kWorks; });
  ASSERT_OK(store_->Create(DenseSettings("a", 2), "", false).status());
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  Producer producer("");
  LearnCall call;
  call.batch = mistake_.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  std::vector<absl::Status> answers;
  for (int i = 0; i < 5; ++i)
    store_->committer().Submit(model, [&](absl::Status status) { answers.push_back(status); });
  EXPECT_TRUE(absl::IsUnavailable(store_->committer().Commit(model)));
  ASSERT_EQ(answers.size(), 5U);
  for (const absl::Status& status : answers) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(ReasonOf(status), "JOURNAL_UNAVAILABLE");
  }
  EXPECT_TRUE(absl::IsUnavailable(model->closed()));
  EXPECT_TRUE(absl::IsUnavailable(model->Learn(call, outcome)));
  EXPECT_GE(store_->stats().commit_failures, 1U);
  EXPECT_EQ(store_->stats().models_in_memory, 0U);
}

TEST_F(Faults, AFailedCommitOfOneGroupClosesOnlyTheModelsInIt) {
  OpenFailing(Call::kCommit, 2, Fate::kFails);
  ASSERT_OK(store_->Create(DenseSettings("a", 2), "", false).status());
  ASSERT_OK(store_->Create(DenseSettings("b", 2), "", false).status());
  ASSERT_OK(Send(*store_, "b", "p", mistake_.batch()).status);
  const std::shared_ptr<Model> other = store_->Acquire("b").value();
  EXPECT_FALSE(Send(*store_, "a", "p", mistake_.batch()).status.ok());
  EXPECT_OK(other->closed());
  EXPECT_OK(Send(*store_, "b", "p", mistake_.batch()).status);
}

class LoadFault : public Faults, public ::testing::WithParamInterface<Call> {};

TEST_P(LoadFault, IsUnavailableOnceAndThenOver) {
  Open([](Call, uint64_t) { return Fate::kWorks; });
  ASSERT_OK(store_->Create(DenseSettings("a", 2), "", false).status());
  ASSERT_OK(Send(*store_, "a", "p", mistake_.batch()).status);
  const std::string state = StateBytes(*store_->Acquire("a").value());
  OpenFailing(GetParam(), 1, Fate::kFails);
  const absl::Status status = store_->Acquire("a").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ReasonOf(status), "JOURNAL_UNAVAILABLE");
  const auto model = store_->Acquire("a");
  ASSERT_OK(model.status());
  EXPECT_EQ(StateBytes(**model), state);
}

INSTANTIATE_TEST_SUITE_P(Calls, LoadFault,
                         ::testing::Values(Call::kLoadCommittedState, Call::kLoadSnapshot,
                                           Call::kReplay));

TEST_F(Faults, AFailedSnapshotIsNoLoss) {
  auto recording = std::make_shared<testing::RecordingJournal>(
      std::make_shared<FaultyJournal>(base_, [](Call call, uint64_t number) {
        return call == Call::kSaveSnapshot && number <= 2 ? Fate::kFails : Fate::kWorks;
      }));
  Store::Options options;
  options.snapshot_bytes = 1;
  // From the snapshotter's thread, which ends with the store.
  std::vector<std::string> complaints;
  options.on_snapshot_failure = [&](const std::string& name, const absl::Status& why) {
    EXPECT_TRUE(absl::IsUnavailable(why)) << why;
    complaints.push_back(name);
  };
  store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(recording), options);
  testing::TrafficOptions traffic;
  traffic.messages = 200;
  ASSERT_OK(store_->Create(DenseSettings("a", traffic.dimension), "", false).status());
  const auto messages = MakeTraffic(1, traffic);
  for (const Message& message : messages)
    ASSERT_OK(SendMessage(*store_, "a", Space::kDense, message).status);
  // A commit asks for the next one only after the first has failed.
  while (recording->snapshots() < 2)
    ASSERT_OK(SendMessage(*store_, "a", Space::kDense, messages.back()).status);
  const std::string state = StateBytes(*store_->Acquire("a").value());
  EXPECT_GE(store_->stats().snapshot_failures, 1);  // the second may still be on its way
  store_.reset();
  EXPECT_EQ(complaints, std::vector<std::string>{"a"});  // once for both
  Open([](Call, uint64_t) { return Fate::kWorks; });
  EXPECT_EQ(StateBytes(*store_->Acquire("a").value()), state);
}

Fate RandomFate(std::mt19937& random, Call call) {
  if (random() % 6 != 0) return Fate::kWorks;
  if (call != Call::kCommit) return random() % 2 == 0 ? Fate::kFails : Fate::kFailsAfterwards;
  constexpr Fate kFates[] = {Fate::kFails, Fate::kFailsAfterwards, Fate::kLeavesRecords};
  return kFates[random() % 3];
}

// The journal's records are one run of the perceptron, whose weights the model has: each row is a mistake of the weights
// before it, and each update rounds once from float64.
void ExpectOneRun(Journal& journal, const Model& model, size_t dimension) {
  std::vector<float> weights(dimension);
  double bias = 0;
  uint64_t revision = 0;
  EXPECT_OK(journal.Replay(model.id(), 0, [&](const storage::UpdateRecord& record, size_t) {
    EXPECT_EQ(record.first_revision(), revision + 1);
    int at = 0;
    for (int row = 0; row < record.labels_size(); ++row, ++revision) {
      const double label = record.labels(row);
      const int begin = at;
      double score = bias;
      for (; at < static_cast<int>(record.row_ends(row)); ++at)
        score += static_cast<double>(weights[record.indices(at)]) * record.values(at);
      // The product's sum may have another order.
      EXPECT_LE(label * score, 1e-9);
      for (int i = begin; i < at; ++i) {
        float& weight = weights[record.indices(i)];
        weight = static_cast<float>(weight + label * record.values(i));
      }
      bias += label;
    }
    return absl::OkStatus();
  }));
  EXPECT_EQ(model.revision(), revision);
  const WeightList list = ListWeights(model)[0];
  std::vector<float> found(dimension);
  for (size_t i = 0; i < list.indices.size(); ++i) found[list.indices[i]] = list.values[i];
  for (size_t i = 0; i < dimension; ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(weights[i])) << i;
  EXPECT_EQ(list.bias, bias);
}

// The order of the producers' examples is open, but the journal says it.
TEST_F(Faults, RandomFailuresUnderSeveralProducersKeepTheJournalOneRun) {
  constexpr uint32_t kDimension = 24;
  std::mt19937 random(99);
  Open([random](Call call, uint64_t) mutable { return RandomFate(random, call); });
  ASSERT_OK(store_->Create(DenseSettings("a", kDimension), "", false).status());
  uint64_t examples = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    testing::TrafficOptions traffic;
    traffic.messages = 60;
    traffic.bad_rows = false;
    std::vector<Message> messages = MakeTraffic(7 + t, traffic);
    for (Message& message : messages) {
      message.producer = absl::StrCat("thread-", t);
      examples += message.examples.size();
    }
    threads.emplace_back([this, messages = std::move(messages)] {
      for (const Message& message : messages) {
        absl::Status status;
        while (!(status = SendMessage(*store_, "a", Space::kDense, message).status).ok())
          ASSERT_TRUE(absl::IsUnavailable(status)) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Open([](Call, uint64_t) { return Fate::kWorks; });
  const std::shared_ptr<Model> model = store_->Acquire("a").value();
  EXPECT_EQ(MakeReport(*model).examples(), examples);
  ExpectOneRun(*base_, *model, kDimension);
}

}  // namespace
}  // namespace perceptrond
