// Several servers that open one journal: each partition has one writer, the others follow it, and what was acknowledged
// survives every change of writers.
#include <atomic>

#include "absl/strings/match.h"
#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

// The journal of a server that writes one model's updates as a newer release does, which the others cannot
// repeat.
class NewerJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    std::vector<JournalEntry> newer(entries.begin(), entries.end());
    for (JournalEntry& entry : newer) {
      if (entry.model_id != newer_model) continue;
      for (storage::UpdateRecord& record : entry.records) record.set_arithmetic_version(2);
    }
    return JournalDecorator::Commit(newer, options);
  }
  std::atomic<uint64_t> newer_model = 0;
};

// A journal that says when a partition's log is read, and when it has been.
class WatchedJournal final : public testing::JournalDecorator {
 public:
  using OnRead = std::function<void(uint32_t partition, bool is_over)>;
  WatchedJournal(std::shared_ptr<Journal> base, OnRead on_read)
      : JournalDecorator(std::move(base)), on_read_(std::move(on_read)) {}
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    absl::StatusOr<std::unique_ptr<JournalTail>> tail = JournalDecorator::Tail(partition, after);
    if (!tail.ok()) return tail;
    return std::make_unique<WatchedTail>(*std::move(tail), partition, on_read_);
  }

 private:
  class WatchedTail final : public JournalTail {
   public:
    WatchedTail(std::unique_ptr<JournalTail> base, uint32_t partition, OnRead on_read)
        : base_(std::move(base)), partition_(partition), on_read_(std::move(on_read)) {}
    absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
      on_read_(partition_, /*is_over=*/false);
      absl::StatusOr<std::vector<SequencedEntry>> entries = base_->Next(timeout);
      on_read_(partition_, /*is_over=*/true);
      return entries;
    }
    int64_t epoch() const override { return base_->epoch(); }
    uint64_t pending() const override { return base_->pending(); }

   private:
    const std::unique_ptr<JournalTail> base_;
    const uint32_t partition_;
    const OnRead on_read_;
  };

  const OnRead on_read_;
};

TEST_F(FleetTest, AServerIsInContactSinceItAskedAndNotSinceAnAnswerThatWasLongOnItsWay) {
  constexpr int kSteps = 200;
  enum class Answer { kSoon, kOnItsWay, kThere, kSeen };
  std::atomic<Answer> answer = Answer::kSoon;
  absl::Duration since_contact;
  Store* store = nullptr;
  const auto on_read = [&](uint32_t partition, bool is_over) {
    if (partition != 0) return;
    if (is_over && answer == Answer::kOnItsWay) {
      steps_ += kSteps;
      answer = Answer::kThere;
    } else if (!is_over && answer == Answer::kThere) {
      since_contact = store->fleet()->stats()[0].since_contact;
      answer = Answer::kSeen;
    }
  };
  servers_.reserve(8);
  store = Start(std::make_unique<WatchedJournal>(journal_.OpenAgain(), on_read)).store.get();
  PassUntil([&] { return WrittenOnce(); });
  answer = Answer::kOnItsWay;
  PassUntil([&] { return answer == Answer::kSeen; });
  EXPECT_GE(since_contact, kSteps * kStep);
  servers_.clear();
}

TEST_F(FleetTest, AServerThatIsNotTheWriterLearnsNothing) {
  // The writer stays the writer.
  fleet_options_.settle_time = absl::Hours(1);
  Start(2);
  Create("models/m");
  const auto messages = MakeTraffic(1, traffic_);
  Server& follower = FollowerOf("models/m");
  const absl::Status refused =
      SendMessage(*follower.store, "models/m", Space::kDense, messages[0]).status;
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(follower.store->Acquire("models/m").value()->revision(), 0U);
}

TEST_F(FleetTest, AServerThatLeavesHandsItsPartitionsOverWithoutALoss) {
  Start(3);
  Create("models/m");
  const auto messages = MakeTraffic(2, traffic_);
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages[i]));
    // A server that has just started is given partitions soon.
    Pass();
    if (i % 40 != 20) continue;
    // The writer restarts: the others have all the time its models.
    WriterOf("models/m")->store.reset();
    Start();
  }
  PassUntil([&] { return AllHave("models/m", Expected(messages)); });
  PassUntil([&] { return WrittenOnce(); });
}

TEST_F(FleetTest, AWriterThatStoodStillWhileAnotherTookOverWritesNothing) {
  fleet_options_.settle_time = absl::Hours(1);
  Start(3);
  Create("models/m");
  const auto messages = MakeTraffic(3, traffic_);
  const size_t half = messages.size() / 2;
  for (size_t i = 0; i < half; ++i) ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages[i]));
  Server* const old = WriterOf("models/m");
  old->journal->Pause();
  PassUntil([&] {
    for (Server& server : servers_) {
      if (&server != old && server.store->fleet()->Writes(IdOf("models/m"))) return true;
    }
    return false;
  });
  // It does not know, does not say that it still writes, and goes on with what it was about to write.
  EXPECT_TRUE(old->store->fleet()->Writes(IdOf("models/m")));
  EXPECT_FALSE(old->store->fleet()->WritesNow(IdOf("models/m")));
  EXPECT_FALSE(SendMessage(*old->store, "models/m", Space::kDense, messages[half]).status.ok());
  old->journal->Continue();
  for (size_t i = half; i < messages.size(); ++i)
    ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages[i]));
  PassUntil([&] { return AllHave("models/m", Expected(messages)); });
}

TEST_F(FleetTest, AStateNamesTheWriterWhoseUpdatesItHas) {
  fleet_options_.settle_time = absl::Hours(1);
  Start(2);
  Create("models/m");
  const auto messages = MakeTraffic(6, traffic_);
  const auto all_are_of = [&](int64_t epoch) {
    return std::all_of(servers_.begin(), servers_.end(), [&](Server& server) {
      if (server.store == nullptr) return true;
      const auto model = server.store->Acquire("models/m");
      return model.ok() && (*model)->core().epoch == epoch;
    });
  };
  const auto epoch_of = [&](const Server& server) {
    return server.store->fleet()->WriterOf(IdOf("models/m")).epoch;
  };
  ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages[0]));
  const int64_t first = epoch_of(*WriterOf("models/m"));
  EXPECT_GT(first, 0);
  PassUntil([&] { return all_are_of(first); });
  WriterOf("models/m")->store.reset();
  // Also a server that loads the model.
  Start();
  PassUntil([&] { return WrittenOnce(); });
  EXPECT_GT(epoch_of(*WriterOf("models/m")), first);
  PassUntil([&] { return all_are_of(epoch_of(*WriterOf("models/m"))); });
}

TEST_F(FleetTest, ChangesOfAModelReachEveryServer) {
  Start(3);
  Create("models/m");
  for (Server& server : servers_) ASSERT_OK(server.store->Acquire("models/m").status());
  Server& follower = FollowerOf("models/m");
  ASSERT_OK(follower.store
                ->Change("models/m", {},
                         [](v1::Model& model) {
                           model.set_state(v1::MODEL_STATE_FROZEN);
                           return absl::OkStatus();
                         })
                .status());
  // A message that was learned before is answered as a replay.
  size_t next = 0;
  traffic_.messages = 1000;
  const auto messages = MakeTraffic(5, traffic_);
  const auto is_refused = [&] {
    return absl::IsFailedPrecondition(
        SendMessage(*WriterOf("models/m")->store, "models/m", Space::kDense, messages[next++])
            .status);
  };
  while (next < messages.size() && !is_refused()) Pass();
  ASSERT_LT(next, messages.size());
  ASSERT_OK(follower.store->Delete("models/m", "", false));
  PassUntil([&] {
    return std::all_of(servers_.begin(), servers_.end(), [](Server& server) {
      return absl::IsNotFound(server.store->Acquire("models/m").status());
    });
  });
}

TEST_F(FleetTest, OlderServersPredictWithWhatTheyKnewOfAModelThatANewerOneLearns) {
  // The first server stays the writer of all.
  fleet_options_.settle_time = absl::Hours(1);
  servers_.reserve(3);
  auto owned = std::make_unique<NewerJournal>(journal_.OpenAgain());
  NewerJournal& newer = *owned;
  Start(std::move(owned));
  PassUntil([&] { return WrittenOnce(); });
  Start();
  Start();
  PassUntil([&] { return AllHaveReadTheLog(); });
  ASSERT_NO_FATAL_FAILURE(Create("models/theirs"));
  ASSERT_NO_FATAL_FAILURE(Create("models/m"));
  newer.newer_model = IdOf("models/theirs");
  for (Server& server : servers_) ASSERT_OK(server.store->Acquire("models/theirs").status());
  const auto messages = MakeTraffic(1, traffic_);
  ASSERT_NO_FATAL_FAILURE(Learn("models/theirs", messages[0]));
  for (size_t i = 1; i < servers_.size(); ++i) {
    Store& older = *servers_[i].store;
    PassUntil([&] {
      const absl::Status status = older.Acquire("models/theirs").status();
      return absl::IsUnavailable(status) && absl::StrContains(status.message(), "newer server");
    });
    ModelHandle handle(older);
    EXPECT_OK(handle.AcquireToPredict("models/theirs", 0).status());
  }
  ASSERT_NO_FATAL_FAILURE(Learn("models/m", messages[0]));
  PassUntil([&] { return AllHave("models/m", Expected({messages[0]})); });
  ASSERT_NO_FATAL_FAILURE(Learn("models/theirs", messages[1]));
}

}  // namespace
}  // namespace perceptrond::fleet_test
