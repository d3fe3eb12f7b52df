// Rollbacks to revisions between kept snapshots, and which records the journal holds for them.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb_journal.h"
#include "core/learner/catalogue.h"
#include "core/store/model_history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/each_learner.h"
#include "tests/support/eventually.h"
#include "tests/support/learners.h"
#include "tests/support/status.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::revision_rollback_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Message;
using testing::Space;
using testing::StoreTest;
namespace v1 = ::perceptron::v1;

constexpr char kName[] = "models/a";
// What learns only what the other has learned up to the revision.
constexpr char kPrefix[] = "models/b";

// What a rule has learned.
std::string WeightBytes(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_learning_curve();
  snapshot.clear_stored_rows();
  snapshot.clear_revision();
  return snapshot.SerializeAsString();
}

std::shared_ptr<Model> Get(Store& store, const std::string& name) {
  const auto model = store.Acquire(name);
  EXPECT_OK(model.status());
  return model.value();
}

// Has the server write a snapshot of the model, as when its journal has grown.
void TakeSnapshot(Store& store, const std::string& name) {
  const uint64_t before = store.stats().snapshots;
  ASSERT_OK(ModelHistory(store).Keep(name, "passing").status());
  ASSERT_OK(ModelHistory(store).Delete(name, "passing"));
  ASSERT_TRUE(testing::Eventually([&] { return store.stats().snapshots > before; }));
}

LearnOutcome Learn(Store& store, const std::string& name, Space space, const Message& message) {
  const testing::Sent sent = testing::Send(store, name, message.producer,
                                           testing::SpaceBatch(space, message.examples).batch());
  EXPECT_OK(sent.status);
  return sent.outcome;
}

// Has the perceptron make one update: an example that is right is wrong with the other label.
void LearnOneUpdate(Store& store) {
  const uint64_t before = Get(store, kName)->revision();
  const auto x = static_cast<float>(100 * (before + 1));
  for (const int label : {1, -1}) {
    if (Get(store, kName)->revision() > before) return;
    EXPECT_OK(testing::Send(store, kName, "p", testing::Columns().AddDense({x, 1}, label).batch())
                  .status);
  }
  ASSERT_EQ(Get(store, kName)->revision(), before + 1);
}

void ExpectSameRun(Store& store) {
  const std::shared_ptr<Model> model = Get(store, kName);
  const std::shared_ptr<Model> prefix = Get(store, kPrefix);
  EXPECT_TRUE(WeightBytes(*model) == WeightBytes(*prefix));
  const storage::Counters one = model->ledger().counters();
  const storage::Counters other = prefix->ledger().counters();
  EXPECT_EQ(one.report().updates() - one.undone_updates(), other.report().updates());
  EXPECT_EQ(one.whole_steps(), other.whole_steps());
  EXPECT_EQ(one.rounding(), other.rounding());
  EXPECT_EQ(one.weighted_updates(), other.weighted_updates());
  EXPECT_EQ(one.weight_replacements(), other.weight_replacements());
  if (FindLearner(model->settings().learner).counts_examples) {
    EXPECT_EQ(model->ledger().examples(), prefix->ledger().examples());
  }
  EXPECT_GE(one.squared_radius(), other.squared_radius());
  if (other.has_margin_ceiling()) {
    EXPECT_LE(one.margin_ceiling(), other.margin_ceiling());
  }
}

// A message, and a row of it that made an update.
struct Moment {
  size_t message = 0;
  uint32_t row = 0;
};

class RevisionOfEachRule : public StoreTest,
                           public ::testing::WithParamInterface<testing::SpaceAndLearner> {
 protected:
  static constexpr size_t kKeptAt = 15;
  static constexpr size_t kMessages = 60;

  void SetUp() override {
    testing::TrafficOptions options;
    options.space = space();
    messages_ = testing::MakeTraffic(23, options);
    settings_ = testing::SpaceSettings(space(), kName, options.dimension);
    testing::SetLearner(*settings_.mutable_learner(), std::string(std::get<1>(GetParam())->name));
    ASSERT_OK(store_->Create(settings_, "", false).status());
  }
  static Space space() { return std::get<0>(GetParam()); }
  // All rows before an update.
  void LearnPrefix(const Moment& next) {
    settings_.set_name(kPrefix);
    ASSERT_OK(store_->Create(settings_, "", false).status());
    for (size_t i = 0; i < next.message; ++i) Learn(*store_, kPrefix, space(), messages_[i]);
    Message part = messages_[next.message];
    part.examples.resize(next.row);
    if (next.row > 0) Learn(*store_, kPrefix, space(), part);
  }
  void LearnOn(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (const char* name : {kName, kPrefix}) Learn(*store_, name, space(), messages_[i]);
    }
  }

  std::vector<Message> messages_;
  v1::Model settings_;
};

TEST_P(RevisionOfEachRule, IsThatOfARunThatLearnedAllBeforeTheNextUpdate) {
  std::vector<Moment> moments;
  for (size_t i = 0; i < kMessages; ++i) {
    if (i == kKeptAt) ASSERT_OK(ModelHistory(*store_).Keep(kName, "kept").status());
    if (i % 20 == 10) TakeSnapshot(*store_, kName);
    const LearnOutcome outcome = Learn(*store_, kName, space(), messages_[i]);
    if (i < kKeptAt) continue;
    for (const uint32_t row : outcome.updated_rows) moments.push_back({i, row});
  }
  ASSERT_GT(moments.size(), 5U);
  // After the last update nothing came but what is right.
  moments.push_back({kMessages, 0});
  std::mt19937 random(static_cast<uint32_t>(moments.size()));
  for (int round = 0; round < 3; ++round) {
    LearnPrefix(round == 0 ? moments.back() : moments[random() % moments.size()]);
    const uint64_t revision = Get(*store_, kPrefix)->revision();
    const uint64_t newest = Get(*store_, kName)->revision();
    const absl::Status status = ModelHistory(*store_).RollBack(kName, {"", revision}, std::nullopt);
    ASSERT_OK(status);
    EXPECT_EQ(Get(*store_, kName)->revision(), newest + 1);
    ExpectSameRun(*store_);
    LearnOn(kMessages + 10 * round, kMessages + 10 * round + 5);
    ExpectSameRun(*store_);
    Open(Store::Options());
    ExpectSameRun(*store_);
    LearnOn(kMessages + 10 * round + 5, kMessages + 10 * round + 10);
    ExpectSameRun(*store_);
    ASSERT_OK(store_->Delete(kPrefix, "", false));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RevisionOfEachRule, testing::EachSpaceAndLearner(), testing::NameOf);

class RevisionRollback : public StoreTest {
 protected:
  void Update() {
    LearnOneUpdate(*store_);
    weights_.push_back(WeightBytes(*Get(*store_, kName)));
  }
  absl::Status RollBack(uint64_t revision) {
    absl::Status status = ModelHistory(*store_).RollBack(kName, {"", revision}, std::nullopt);
    if (status.ok()) weights_.push_back(WeightBytes(*Get(*store_, kName)));
    return status;
  }
  // Those of each revision, from 0.
  std::vector<std::string> weights_;
};

TEST_F(RevisionRollback, GoesBeyondEarlierRollbacksAndNewWeights) {
  Create(kName);
  weights_.push_back(WeightBytes(*Get(*store_, kName)));
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "empty").status());
  for (int i = 0; i < 4; ++i) Update();
  ASSERT_OK(RollBack(2));
  Update();
  NewWeights weights;
  weights.vectors.push_back({{0}, {9}, 0});
  ASSERT_OK(Get(*store_, kName)->ReplaceWeights(weights, std::nullopt).status());
  ASSERT_OK(store_->committer().Commit(Get(*store_, kName)));
  weights_.push_back(WeightBytes(*Get(*store_, kName)));
  Update();
  TakeSnapshot(*store_, kName);
  Update();
  const size_t size = weights_.size();
  ASSERT_EQ(Get(*store_, kName)->revision(), size - 1);
  // k of the theorem, and the weight replacements, of each revision's run.
  const std::vector<uint64_t> run = {0, 1, 2, 3, 4, 2, 3, 4, 5, 6};
  ASSERT_EQ(run.size(), size);
  for (uint64_t revision = 0; revision < size; ++revision) {
    ASSERT_OK(RollBack(revision));
    EXPECT_TRUE(weights_.back() == weights_[revision]) << revision;
    Open(Store::Options());
    EXPECT_TRUE(WeightBytes(*Get(*store_, kName)) == weights_[revision]) << revision;
    const storage::Counters counters = Get(*store_, kName)->ledger().counters();
    EXPECT_EQ(counters.report().updates() - counters.undone_updates(), run[revision]) << revision;
    EXPECT_EQ(counters.weight_replacements(), revision >= 7 ? 1U : 0U) << revision;
  }
}

TEST_F(RevisionRollback, IsRefusedWithTheRevisionsThatThereAre) {
  Create(kName);
  Update();
  EXPECT_EQ(testing::ReasonOf(RollBack(1)), "REVISION_NOT_KEPT");
  Update();
  TakeSnapshot(*store_, kName);
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "two").status());
  Update();
  TakeSnapshot(*store_, kName);
  Update();
  for (const uint64_t revision : {0, 1, 5}) {
    const absl::Status status = RollBack(revision);
    EXPECT_EQ(testing::ReasonOf(status), "REVISION_NOT_KEPT");
    EXPECT_THAT(status.message(), HasSubstr("it keeps 2 to 4")) << revision;
  }
  EXPECT_EQ(Get(*store_, kName)->revision(), 4U);
  ASSERT_OK(RollBack(3));
}

TEST_F(RevisionRollback, TheOldestRecordsAreDroppedBeyondTheLimit) {
  Store::Options options;
  options.max_history_bytes = 1;
  Open(options);
  Create(kName);
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "first").status());
  Update();
  Update();
  TakeSnapshot(*store_, kName);
  Update();
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "third").status());
  Update();
  const absl::Status status = RollBack(1);
  EXPECT_EQ(testing::ReasonOf(status), "REVISION_NOT_KEPT");
  EXPECT_THAT(status.message(), HasSubstr("it keeps 0, 3 to 4"));
  ASSERT_OK(RollBack(4));
  ASSERT_OK(RollBack(0));
}

TEST_F(RevisionRollback, RecordsGoWithTheSnapshotThatTheyWereHeldFor) {
  Create(kName);
  ASSERT_OK(ModelHistory(*store_).Keep(kName, "k").status());
  Update();
  Update();
  TakeSnapshot(*store_, kName);
  const auto held = [&] {
    std::vector<uint64_t> revisions;
    EXPECT_OK(journal_->Replay(store_->catalogue().Find(kName)->id(), 0,
                               [&](const storage::UpdateRecord& record, size_t /*bytes*/) {
                                 revisions.push_back(LastRevision(record));
                                 return absl::OkStatus();
                               }));
    return revisions;
  };
  EXPECT_THAT(held(), ElementsAre(1, 2));
  ASSERT_OK(ModelHistory(*store_).Delete(kName, "k"));
  EXPECT_TRUE(testing::Eventually([&] { return held().empty(); }));
}

// As RevisionRollback, on disk.
TEST(RevisionRollbackOnDisk, OutlivesTheServer) {
  const testing::TempDir dir;
  RocksDbJournal::Options options;
  options.directory = dir.path() + "/journal";
  std::vector<std::string> weights;
  for (const bool reopened : {false, true}) {
    auto journal = RocksDbJournal::Open(options);
    ASSERT_OK(journal.status());
    Store store(*std::move(journal), Store::Options());
    if (!reopened) {
      ASSERT_OK(store.Create(testing::DenseSettings(kName, 2), "", false).status());
      ASSERT_OK(ModelHistory(store).Keep(kName, "k").status());
    }
    for (int i = 0; i < 6; ++i) {
      weights.push_back(WeightBytes(*Get(store, kName)));
      if (i == 3) TakeSnapshot(store, kName);
      LearnOneUpdate(store);
    }
  }
  auto journal = RocksDbJournal::Open(options);
  ASSERT_OK(journal.status());
  Store store(*std::move(journal), Store::Options());
  for (const uint64_t revision : {11, 2, 7, 0, 9}) {
    ASSERT_OK(ModelHistory(store).RollBack(kName, {"", revision}, std::nullopt));
    EXPECT_TRUE(WeightBytes(*Get(store, kName)) == weights[revision]) << revision;
  }
}

}  // namespace
}  // namespace perceptrond::revision_rollback_test
