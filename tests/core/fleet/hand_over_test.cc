// A writer that learns while it hands its partitions over.
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "core/model/views.h"
#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

// Has something happen once, after a commit.
class CommittedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    auto outcome = JournalDecorator::Commit(entries, options);
    if (const auto once = std::exchange(after_commit, nullptr)) once();
    return outcome;
  }
  std::function<void()> after_commit;
};

// Tells when its server reads the log of partition 0, and has something happen once, before that is told where it ends.
class LogJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override {
    if (partition == 0 && is_armed.exchange(false)) before_end();
    return JournalDecorator::LastSequence(partition);
  }
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    auto tail = JournalDecorator::Tail(partition, after);
    if (partition == 0) is_read = true;
    return tail;
  }
  std::function<void()> before_end;
  std::atomic<bool> is_armed = false;
  std::atomic<bool> is_read = false;
};

class ReleaseTest : public FleetTest {
 protected:
  // Another server takes partition 0 over. Returns its epoch.
  int64_t TakeOver(const std::string& address) {
    const auto taken = journal_.TakeOver(0, address, journal_.LastSequence(0).value());
    EXPECT_OK(taken.status());
    return taken->epoch;
  }
  void Release(int64_t epoch) {
    ::perceptron::fleet::v1::Heartbeat heartbeat;
    heartbeat.set_server_id("before");
    heartbeat.set_leaving(true);
    ::perceptron::fleet::v1::WrittenPartition& written = *heartbeat.add_written();
    written.set_epoch(epoch);
    written.set_released(true);
    EXPECT_OK(journal_.Announce(heartbeat.SerializeAsString()));
  }
};

TEST_F(ReleaseTest, APartitionThatAnotherServerHasJustTakenOverIsLeftToIt) {
  servers_.reserve(1);
  auto owned = std::make_unique<LogJournal>(journal_.OpenAgain());
  LogJournal& journal = *owned;
  std::atomic<int64_t> epoch = 0;
  journal.before_end = [&] { epoch = TakeOver("faster"); };
  Fleet& fleet = *Start(std::move(owned)).store->fleet();
  PassUntil([&] { return WrittenOnce(); });
  const int64_t before = TakeOver("before");
  PassUntil([&] { return fleet.WriterOf(0).address == "before"; });
  journal.is_armed = true;
  Release(before);
  PassUntil([&] { return epoch != 0 && fleet.WriterOf(0).epoch >= epoch; });
  // Much longer than a take-over takes, and less than the silence of a writer.
  for (int i = 0; i < 10; ++i) Pass();
  EXPECT_EQ(fleet.WriterOf(0).address, "faster");
}

TEST_F(ReleaseTest, AServerThatHearsOfItBeforeItHasReadWhoWroteTakesOver) {
  const auto log = std::make_shared<LogJournal>(journal_.OpenAgain());
  auto owned = std::make_unique<DisturbedJournal>(log);
  DisturbedJournal& journal = *owned;
  journal.Hold();
  fleet_options_.address = "this";
  Store::Options options;
  options.fleet = std::make_shared<FleetOptions>(fleet_options_);
  Store store(std::move(owned), options);
  testing::WaitUntil([&] { return log->is_read.load(); });
  const int64_t before = TakeOver("before");
  const uint64_t last = journal_.LastSequence(0).value();
  Release(before);
  testing::WaitUntil([&] { return journal_.LastSequence(0).value() > last; });
  journal.Release();
  testing::WaitUntil([&] { return store.fleet()->stats()[0].entries == 2; });
  EXPECT_TRUE(store.fleet()->Writes(0));
}

TEST_F(FleetTest, AServerThatNeverHeardOfADeadWriterTakesOver) {
  servers_.reserve(2);
  ASSERT_NO_FATAL_FAILURE(Start(1));
  servers_[0].journal->Pause();
  Server& next = Start();
  PassUntil([&] { return Written(next) == static_cast<int>(kPartitions); });
}

TEST_F(FleetTest, CorrectRowsThatAreAcknowledgedWhileAWriterHandsOverAreCounted) {
  servers_.reserve(2);
  auto owned = std::make_unique<CommittedJournal>(journal_.OpenAgain());
  CommittedJournal& journal = *owned;
  Store::Options options;
  // As a server has it: counts of correct rows are acknowledged and written later.
  options.committer.counters_delay = absl::Hours(1);
  Server& writer = Start(std::move(owned), options);
  PassUntil([&] { return WrittenOnce(); });
  ASSERT_NO_FATAL_FAILURE(Create("models/m"));
  const auto model = writer.store->Acquire("models/m").value();
  const auto producer = model->ledger().FindProducer("p").value();
  const std::vector<float> values(traffic_.dimension, 1);
  const std::vector<int32_t> labels = {1};
  uint64_t acknowledged = 0;
  const auto learn = [&] {
    MutexLock turn(&producer->turn);
    LearnCall call;
    call.batch.values = values;
    call.batch.dense_width = traffic_.dimension;
    call.batch.labels = labels;
    call.producer = producer.get();
    LearnOutcome outcome;
    if (!model->Learn(call, outcome).ok()) return;
    writer.store->committer().Submit(model, [](const absl::Status& status) { EXPECT_OK(status); });
    ++acknowledged;
  };
  for (int i = 0; i < 3; ++i) learn();
  ASSERT_OK(writer.store->committer().Commit(model));
  learn();
  ASSERT_EQ(acknowledged, 4U);
  // Rows that come after the last commit must not be acknowledged.
  journal.after_commit = learn;
  writer.store->fleet()->Leave();
  Server& next = Start();
  PassUntil([&] { return next.store->fleet()->Writes(IdOf("models/m")); });
  EXPECT_EQ(MakeReport(**next.store->Acquire("models/m")).examples(), acknowledged);
}

TEST_F(FleetTest, AServerThatAnswersLateIsWaitedFor) {
  fleet_options_.writer_timeout = absl::Hours(1);
  fleet_options_.max_rest_time = absl::Hours(1);
  servers_.reserve(1);
  Store& store = *Start().store;
  PassUntil([&] { return WrittenOnce(); });
  ASSERT_NO_FATAL_FAILURE(Create("models/m"));
  const auto model = store.Acquire("models/m").value();
  std::unique_ptr<OpenStreams::Ticket> ticket;
  std::thread late;
  std::atomic<bool> answered = false;
  const auto on_ask = [&] {
    late = std::thread([&] {
      answered = true;
      ticket.reset();
    });
  };
  ticket = store.streams().Open(
      model->uid(), "", [](const absl::Status& /*why*/) {}, on_ask);
  store.fleet()->Leave();
  EXPECT_TRUE(answered);
  ASSERT_TRUE(late.joinable());
  late.join();
}

}  // namespace
}  // namespace perceptrond::fleet_test
