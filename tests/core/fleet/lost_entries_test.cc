// The log of running servers becomes an older one: a copy was restored, or a standby promoted that lacked commits.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/fleet/fleet_fixture.h"

namespace perceptrond::fleet_test {
namespace {

// Has something happen once, between the reading of a model and its following the log.
class LoadedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override {
    auto stored = base().Load(model_id);
    if (const auto once = std::exchange(after_load, nullptr)) once();
    return stored;
  }
  std::function<void()> after_load;
};

class LostEntriesTest : public FleetTest {
 protected:
  using Rows = std::vector<TableRow>;

  Rows Save() {
    Rows rows;
    EXPECT_OK(table_.Scan(kAll, [&](absl::string_view key, absl::string_view value) {
      rows.push_back({std::string(key), std::string(value)});
      return true;
    }));
    return rows;
  }
  void Restore(const Rows& rows) {
    TableChange change;
    change.deletions.push_back(kAll);
    change.puts = rows;
    ASSERT_TRUE(table_.Commit(change, /*sync=*/true).value());
  }
  // Returns the claim of a producer that the model's writer answers now.
  EpochBegin Claim(const std::string& name) {
    EpochBegin claim;
    PassUntil([&] {
      const auto model = WriterOf(name)->store->Acquire(name);
      if (model.ok()) claim = {(*model)->core().epoch, (*model)->revision()};
      return model.ok();
    });
    return claim;
  }
  // Waits until all servers know whether the claim's state is still there.
  void AwaitKept(const std::string& name, const EpochBegin& claim, bool kept) {
    PassUntil([&] {
      return std::all_of(servers_.begin(), servers_.end(), [&](const Server& server) {
        // A server that has just learned of another writer drops the model first.
        const auto model = server.store->Acquire(name);
        return model.ok() && (*model)->ledger().HasState(claim.epoch, claim.revision,
                                                         (*model)->revision()) == kept;
      });
    });
  }
  // Has another server than the writer take the partition over, as if that was cut off.
  void ChangeWriter(const std::string& name) {
    Server* const old = WriterOf(name);
    old->journal->Pause();
    PassUntil([&] {
      return std::any_of(servers_.begin(), servers_.end(), [&](const Server& server) {
        return &server != old && server.store->fleet()->Writes(IdOf(name));
      });
    });
    old->journal->Continue();
    PassUntil([&] { return AllAgree(); });
  }
  // True if the log of each partition has one writer, and all servers take it for that.
  bool AllAgree() {
    std::vector<std::string> writers;
    for (Server& server : servers_) {
      for (uint64_t id = 0; id < kPartitions; ++id) {
        const std::string writer = server.store->fleet()->WriterOf(id).address;
        if (writers.size() < kPartitions) writers.push_back(writer);
        if (writers[id] != writer || writer.empty()) return false;
      }
    }
    return WrittenOnce();
  }
  // Three servers learn, and the log goes back to a copy that has the first `kept` messages; after the copy another server
  // writes, if `by_another`. The servers load what is left and learn the rest again, to the same revision.
  void LoseAndLearnAgain(int64_t kept, bool by_another) {
    fleet_options_.settle_time = absl::Hours(1);
    Start(3);
    Create("models/m");
    const auto messages = MakeTraffic(7, traffic_);
    ASSERT_LT(kept, static_cast<int64_t>(messages.size()));
    const std::vector<Message> first(messages.begin(), messages.begin() + kept);
    for (const Message& message : first) ASSERT_NO_FATAL_FAILURE(Learn("models/m", message));
    const EpochBegin before = Claim("models/m");
    const Rows copy = Save();
    if (by_another) ASSERT_NO_FATAL_FAILURE(ChangeWriter("models/m"));
    // What is known is not learned again.
    for (const Message& message : messages) ASSERT_NO_FATAL_FAILURE(Learn("models/m", message));
    const std::string all = Expected(messages);
    PassUntil([&] { return AllHave("models/m", all); });
    const EpochBegin lost = Claim("models/m");
    ASSERT_NO_FATAL_FAILURE(Restore(copy));
    const std::string left = Expected(first);
    ASSERT_NE(left, all);
    PassUntil([&] { return AllHave("models/m", left); });
    // A server that took these for learned would answer them, and not learn them.
    for (const Message& message : messages) ASSERT_NO_FATAL_FAILURE(Learn("models/m", message));
    PassUntil([&] { return AllHave("models/m", all); });
    // The revision is reached, by other updates.
    AwaitKept("models/m", lost, false);
    AwaitKept("models/m", before, true);
  }

 private:
  const KeyRange kAll{"", "\xff"};
};

TEST_F(LostEntriesTest, ServersThatHaveReadMoreLoadWhatItHasAndLearnOn) {
  ASSERT_NO_FATAL_FAILURE(LoseAndLearnAgain(/*kept=*/40, /*by_another=*/false));
}

TEST_F(LostEntriesTest, AClaimToALostWritersUpdatesIsNotBelieved) {
  ASSERT_NO_FATAL_FAILURE(LoseAndLearnAgain(/*kept=*/1, /*by_another=*/true));
}

TEST_F(LostEntriesTest, ARightClaimIsBelievedAfterAnyNumberOfTakeOvers) {
  fleet_options_.settle_time = absl::Hours(1);
  Start(3);
  Create("models/m");
  const auto messages = MakeTraffic(7, traffic_);
  auto next = messages.begin();
  std::vector<EpochBegin> claims;
  for (int i = 0; i < 5; ++i) {
    // The third writer updates nothing.
    if (i != 2) ASSERT_NO_FATAL_FAILURE(Learn("models/m", *next++));
    claims.push_back(Claim("models/m"));
    ASSERT_NO_FATAL_FAILURE(ChangeWriter("models/m"));
    PassUntil([&] { return AllHave("models/m", State(*WriterOf("models/m"), "models/m")); });
    for (const EpochBegin& claim : claims) AwaitKept("models/m", claim, true);
  }
  EXPECT_GT(claims.back().revision, claims.front().revision);
}

TEST_F(LostEntriesTest, AWriterThatDoesNotKnowOfTheNextOneConfirmsNothing) {
  servers_.reserve(1);
  Server& server = Start();
  PassUntil([&] { return WrittenOnce() && AllHaveReadTheLog(); });
  Create("models/m");
  const auto model = server.store->Acquire("models/m").value();
  EXPECT_OK(server.store->ConfirmWriter(*model));
  server.journal->Hold();
  const uint32_t partition = journal_.PartitionOf(model->id());
  ASSERT_OK(
      journal_.TakeOver(partition, "another", journal_.LastSequence(partition).value()).status());
  EXPECT_TRUE(absl::IsUnavailable(server.store->ConfirmWriter(*model)));
  server.journal->Release();
}

TEST_F(LostEntriesTest, AModelThatIsLoadedWhenTheLogIsReplacedIsLoadedAgain) {
  fleet_options_.settle_time = absl::Hours(1);
  servers_.reserve(2);
  ASSERT_NO_FATAL_FAILURE(Start(1));
  Create("models/m");
  const Rows copy = Save();
  ASSERT_NO_FATAL_FAILURE(Learn("models/m", MakeTraffic(9, traffic_)[0]));
  auto owned = std::make_unique<LoadedJournal>(journal_.OpenAgain());
  LoadedJournal& journal = *owned;
  Store::Options options;
  std::atomic<uint32_t> reloaded = kPartitions;
  options.on_reload = [&](uint32_t partition, const absl::Status&) { reloaded = partition; };
  Server& follower = Start(std::move(owned), options);
  PassUntil([&] { return AllHaveReadTheLog(); });
  journal.after_load = [&] {
    ASSERT_NO_FATAL_FAILURE(Restore(copy));
    PassUntil([&] { return reloaded == IdOf("models/m") % kPartitions; });
  };
  const std::string before = Expected({});
  PassUntil([&] { return State(follower, "models/m") == before; });
  follower.store.reset();
}

TEST_F(LostEntriesTest, AWriterWhoseTakeOverIsLostIsTakenForTheWriterByNobody) {
  fleet_options_.settle_time = absl::Hours(1);
  Start(3);
  Create("models/m");
  const Rows copy = Save();
  ASSERT_NO_FATAL_FAILURE(ChangeWriter("models/m"));
  ASSERT_NO_FATAL_FAILURE(Restore(copy));
  // None of them writes this log.
  ASSERT_NO_FATAL_FAILURE(Learn("models/m", MakeTraffic(8, traffic_)[0]));
  PassUntil([&] { return AllAgree(); });
}

}  // namespace
}  // namespace perceptrond::fleet_test
