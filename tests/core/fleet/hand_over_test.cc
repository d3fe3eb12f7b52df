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
