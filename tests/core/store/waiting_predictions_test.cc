#include "core/store/waiting_predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "tests/support/status.h"

namespace perceptrond::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using Found = WaitingPredictions::Found;

constexpr uint64_t kModel = 7;
constexpr ValidationCode kFound = ValidationCode::kNone;
constexpr ValidationCode kUnknown = ValidationCode::kUnknownPrediction;
constexpr ValidationCode kExpired = ValidationCode::kPredictionExpired;

// A journal of predictions alone.
class FakeJournal final : public KeptPredictions {
 public:
  bool keeps_predictions() const override { return true; }
  absl::Status SavePredictions(uint64_t model_id,
                               std::span<const KeptPrediction> predictions) override {
    if (fails) return absl::UnavailableError("the disk is full");
    for (const KeptPrediction& one : predictions) kept[{model_id, one.number}] = one;
    return absl::OkStatus();
  }
  absl::Status DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) override {
    for (const uint64_t number : numbers) kept.erase({model_id, number});
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<KeptPrediction>> LoadPredictions(uint64_t model_id) override {
    std::vector<KeptPrediction> all;
    for (const auto& [key, one] : kept) {
      if (key.first == model_id) all.push_back(one);
    }
    return all;
  }

  bool fails = false;
  std::map<std::pair<uint64_t, uint64_t>, KeptPrediction> kept;
};

class WaitingPredictionsTest : public ::testing::Test {
 protected:
  WaitingPredictionsTest() { Start(); }

  void Start(const std::string& address = "") {
    all_ = std::make_unique<WaitingPredictions>(
        journal_, budget_, address, [this] { return absl::FromUnixMicros(now_.load()); });
  }
  void Open(bool durable = false, uint64_t max_bytes = 1 << 20) {
    ASSERT_OK(all_->Open(kModel, {absl::Seconds(10), max_bytes, durable}));
  }
  std::vector<std::string> Add(std::vector<std::string> examples) {
    absl::StatusOr<std::vector<std::string>> ids = all_->Add(kModel, std::move(examples));
    EXPECT_OK(ids.status());
    return *std::move(ids);
  }
  Found Claim(const std::string& id, uint64_t model = kModel) {
    const absl::string_view view = id;
    return all_->Claim(model, {&view, 1}).at(0);
  }
  void Settle(const std::string& id, bool joined) {
    const std::vector<std::string> ids = {id};
    joined ? all_->Settle(kModel, ids, {}) : all_->Settle(kModel, {}, ids);
  }
  void Pass(absl::Duration time) { now_ += absl::ToInt64Microseconds(time); }

  std::atomic<int64_t> now_ = int64_t{1'700'000'000'000'000};
  FakeJournal journal_;
  MemoryBudget budget_{1 << 20, 1 << 10};
  std::unique_ptr<WaitingPredictions> all_;
};

TEST_F(WaitingPredictionsTest, FeaturesAreFoundByTheIdOnceAndThenTheIdIsUnknown) {
  Open();
  const std::vector<std::string> ids = Add({"first", "", "second"});
  EXPECT_THAT(ids[1], IsEmpty());
  EXPECT_NE(ids[0], ids[2]);
  const Found found = Claim(ids[2]);
  EXPECT_EQ(found.code, kFound);
  EXPECT_EQ(found.example, "second");
  Settle(ids[2], /*joined=*/true);
  EXPECT_EQ(Claim(ids[2]).code, kUnknown);
  EXPECT_EQ(Claim(ids[0]).example, "first");
}

TEST_F(WaitingPredictionsTest, AClaimedIdIsUnknownUntilItIsReleasedAndEachExpiresWithItsTime) {
  Open();
  const std::vector<std::string> ids = Add({"one", "two"});
  EXPECT_EQ(Claim(ids[0]).code, kFound);
  EXPECT_EQ(Claim(ids[0]).code, kUnknown);
  Settle(ids[0], /*joined=*/false);
  EXPECT_EQ(Claim(ids[0]).code, kFound);
  Pass(absl::Seconds(10) - absl::Microseconds(1));
  EXPECT_EQ(Claim(ids[0]).code, kUnknown);
  EXPECT_EQ(Claim(ids[1]).code, kFound);
  Settle(ids[1], /*joined=*/false);
  // The second id is a microsecond younger.
  Pass(absl::Microseconds(2));
  for (const std::string& id : ids) EXPECT_EQ(Claim(id).code, kExpired);
  Add({"another"});
  EXPECT_EQ(all_->stats().expired, 2U);
  EXPECT_EQ(all_->stats().waiting, 1U);
}

TEST_F(WaitingPredictionsTest, TheOldestGiveRoomToNewOnesAndExpire) {
  Open(/*durable=*/false, /*max_bytes=*/1000);
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(Add({std::string(100, 'a')})[0]);
  // Three of 300 bytes fit.
  EXPECT_EQ(all_->stats().waiting, 3U);
  EXPECT_LE(all_->stats().bytes, 1000U);
  EXPECT_EQ(budget_.reserved(MemoryUse::kModels), all_->stats().bytes);
  EXPECT_EQ(Claim(ids[6]).code, kExpired);
  EXPECT_EQ(Claim(ids[7]).code, kFound);
  EXPECT_THAT(Add({std::string(1000, 'a')})[0], IsEmpty());
}

TEST_F(WaitingPredictionsTest, AllModelsTogetherTakeAQuarterOfTheMemoryBudget) {
  Open();
  ASSERT_OK(all_->Open(kModel + 1, {absl::Seconds(10), 1 << 20, false}));
  for (int i = 0; i < 10; ++i) {
    Add({std::string(50'000, 'a')});
    ASSERT_OK(all_->Add(kModel + 1, {std::string(50'000, 'a')}).status());
    EXPECT_LE(all_->stats().bytes, budget_.limit() / 4);
  }
  EXPECT_EQ(all_->stats().waiting, 5U);
  all_->Remove(kModel);
  all_->Remove(kModel + 1);
  EXPECT_EQ(budget_.reserved(MemoryUse::kModels), 0U);
}

TEST_F(WaitingPredictionsTest, DurableOnesAreThereAfterARestartWithTheirIds) {
  Open(/*durable=*/true);
  const std::vector<std::string> ids = Add({"joined", "waiting"});
  const std::vector<uint64_t> numbers = {Claim(ids[0]).number};
  Settle(ids[0], /*joined=*/true);
  // The commit of its row alone drops it from the journal.
  EXPECT_EQ(journal_.kept.count({kModel, numbers[0]}), 1U);
  ASSERT_OK(journal_.DropPredictions(kModel, numbers));
  Start();
  Open(/*durable=*/true);
  EXPECT_EQ(Claim(ids[0]).code, kUnknown);
  EXPECT_EQ(Claim(ids[1]).example, "waiting");
  // A clock that went back gives no number twice.
  now_ -= 1000;
  EXPECT_NE(Add({"new"})[0], ids[1]);
  Pass(absl::Seconds(20));
  Add({"last"});
  EXPECT_EQ(journal_.kept.size(), 1U);
  // A prediction that the journal refuses is not kept.
  journal_.fails = true;
  EXPECT_TRUE(absl::IsUnavailable(all_->Add(kModel, {"one"}).status()));
  EXPECT_EQ(all_->stats().waiting, 1U);
}

TEST_F(WaitingPredictionsTest, OthersAreLostWithTheServer) {
  Open();
  const std::string id = Add({"one"})[0];
  EXPECT_THAT(journal_.kept, IsEmpty());
  Start();
  Open();
  EXPECT_EQ(Claim(id).code, kUnknown);
}

TEST_F(WaitingPredictionsTest, IdsOfOthersAndGuessesAreUnknown) {
  Open();
  ASSERT_OK(all_->Open(kModel + 1, {absl::Seconds(10), 1 << 20, false}));
  const std::string text = Add({"one"})[0];
  EXPECT_EQ(Claim(text, kModel + 1).code, kUnknown);
  PredictionId id;
  ASSERT_TRUE(id.Parse(text));
  EXPECT_EQ(id.ToString(), text);
  ++id.nonce;
  EXPECT_EQ(Claim(id.ToString()).code, kUnknown);
  for (const char* wrong :
       {"", "1.2.3", "1.2.3.4.5", "x.y.z.w", "0.7.-1.0", "0.7.123456789012345678.0"})
    EXPECT_EQ(Claim(wrong).code, kUnknown) << wrong;
  all_->Remove(kModel);
  EXPECT_EQ(Claim(text).code, kUnknown);
}

TEST_F(WaitingPredictionsTest, DelaysAreCountedFromPredictionToLabel) {
  Open();
  const std::vector<std::string> ids = Add({"one", "two"});
  Pass(absl::Milliseconds(500));
  Claim(ids[0]);
  Settle(ids[0], /*joined=*/true);
  Pass(absl::Seconds(5));
  Claim(ids[1]);
  Settle(ids[1], /*joined=*/true);
  const WaitingPredictions::Stats stats = all_->stats();
  EXPECT_EQ(stats.joined, 2U);
  EXPECT_EQ(stats.delays[0], 1U);
  EXPECT_EQ(stats.delays[1], 1U);
  EXPECT_NEAR(stats.delay_sum, 6, 0.01);
}

TEST_F(WaitingPredictionsTest, OtherServersAreAskedForWhatTheyKeep) {
  Start("b:1");
  Open();
  const PredictionId theirs{ServerTag("a:1"), kModel, 1, 2};
  std::vector<WaitingPredictions::Exchange> asked;
  all_->FindElsewhere([&](uint32_t server, uint64_t model_id,
                          const WaitingPredictions::Exchange& exchange,
                          const std::function<void(std::vector<Found>)>& done) {
    EXPECT_EQ(server, ServerTag("a:1"));
    EXPECT_EQ(model_id, kModel);
    asked.push_back(exchange);
    done(std::vector<Found>(exchange.claimed.size(), Found{kFound, "far"}));
  });
  EXPECT_EQ(Claim(theirs.ToString()).example, "far");
  Settle(theirs.ToString(), /*joined=*/true);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_THAT(asked[1].joined, ::testing::ElementsAre(theirs.ToString()));
  EXPECT_EQ(all_->stats().joined, 0U) << "the server that keeps it counts it";
}

TEST_F(WaitingPredictionsTest, AServerThatDoesNotAnswerIsWaitedForUntilItsPredictionsAreTooOld) {
  Start("b:1");
  Open();
  const auto now = static_cast<uint64_t>(now_.load());
  const std::string theirs = PredictionId{ServerTag("a:1"), kModel, now, 2}.ToString();
  all_->FindElsewhere([&](uint32_t, uint64_t, const WaitingPredictions::Exchange& exchange,
                          const std::function<void(std::vector<Found>)>& done) {
    done(std::vector<Found>(exchange.claimed.size(), Found{kUnknown, "", 0, true}));
  });
  EXPECT_TRUE(Claim(theirs).unanswered);
  Pass(absl::Seconds(9));
  EXPECT_TRUE(Claim(theirs).unanswered);
  Pass(absl::Seconds(1));
  EXPECT_FALSE(Claim(theirs).unanswered);
  EXPECT_EQ(Claim(theirs).code, kExpired);
}

TEST_F(WaitingPredictionsTest, AMessageKeepsItsLearnedRowsAndReleasesTheOthers) {
  Open();
  const std::vector<std::string> ids = Add({"a", "b", "c", "d"});
  const std::vector<absl::string_view> views(ids.begin(), ids.end());
  const std::vector<size_t> rows = {0, 1, 2, 3};
  {
    ClaimedPredictions claimed(*all_, kModel);
    // Row 0 was learned before.
    const std::vector<Found> found = claimed.Claim(views, 1, rows);
    EXPECT_EQ(found[1].example, "b");
    EXPECT_THAT(claimed.kept(), IsEmpty()) << "the journal has none of them";
    const std::vector<RowError> refused = {{2, {ValidationCode::kUnknownLabel, "labels", ""}}};
    claimed.Keep(1, 3, refused);
    claimed.Join();
  }
  EXPECT_EQ(Claim(ids[0]).code, kFound);
  EXPECT_EQ(Claim(ids[1]).code, kUnknown);
  EXPECT_EQ(Claim(ids[2]).code, kFound);
  EXPECT_EQ(Claim(ids[3]).code, kFound);
}

}  // namespace
}  // namespace perceptrond::testing
