// Which revisions a model can be rolled back to, and which records the journal holds for them. replay_test.cc: they are
// what they were.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store/model_history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/status.h"

namespace perceptrond::revision_rollback_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StoreTest;

constexpr char kName[] = "models/a";

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

class RevisionRollback : public StoreTest {
 protected:
  void Update() { LearnOneUpdate(*store_); }
  absl::Status RollBack(uint64_t revision) {
    return ModelHistory(*store_).RollBack(kName, {"", revision}, std::nullopt);
  }
};

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

}  // namespace
}  // namespace perceptrond::revision_rollback_test
