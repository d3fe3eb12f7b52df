// Copies, other names, snapshots and rollbacks over a real connection, streams among it, and a kill
// after each.
#include <string>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/history_service.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class HistoryTest : public ServerTest {
 protected:
  HistoryTest() { CreateDense("a", 2); }
  void CrashAndRestart() {
    server_.Kill();
    Restart();
  }
  static std::string Rows(int begin, int end) {
    std::string rows;
    for (int i = begin; i < end; ++i)
      absl::StrAppend(&rows, " examples { dense { values: [", i % 5 - 2, ", ", i % 7 - 3,
                      "] } label: ", i % 3 == 0 ? -1 : 1, " }");
    return rows;
  }
  void LearnRows(const std::string& id, int begin, int end) {
    EXPECT_EQ(
        Call("LearningService/Learn", absl::StrCat("model: 'models/", id, "'", Rows(begin, end))),
        "OK");
  }
  std::string Keep(const std::string& snapshot) {
    return Call("HistoryService/CreateSnapshot",
                "model: 'models/a' snapshot_id: '" + snapshot + "'");
  }
  v1::Model RollBack(const std::string& to) {
    return AnswerOf<v1::Model>("HistoryService/RollBackModel", "model: 'models/a' " + to);
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }
  static std::string Claim(const std::string& uid, const v1::LearnResult& last) {
    return absl::StrCat("producer { resume { model_uid: '", uid,
                        "' acknowledged_offset: ", last.acknowledged_offset(),
                        " acknowledged_revision: ", last.revision(), " } }");
  }
};

TEST_F(HistoryTest, ARollbackToASnapshotOrARevisionIsDurableWhenItIsAnswered) {
  LearnRows("a", 0, 50);
  const v1::Model kept = Get("a");
  EXPECT_EQ(Keep("k"), "OK");
  LearnRows("a", 50, 60);
  const v1::Model then = Get("a");
  LearnRows("a", 60, 200);
  ASSERT_GT(then.revision(), kept.revision());
  const std::string to_revision = absl::StrCat("revision: ", then.revision());
  for (const auto& [to, state] :
       {std::pair{std::string("snapshot_id: 'k'"), &kept}, {to_revision, &then}}) {
    const v1::Model before = Get("a");
    const v1::Model after = RollBack(to);
    EXPECT_EQ(after.revision(), before.revision() + 1);
    EXPECT_EQ(after.uid(), before.uid());
    EXPECT_EQ(after.report().examples(), before.report().examples());
    EXPECT_EQ(after.report().radius(), before.report().radius());
    EXPECT_EQ(after.report().weight_norm(), state->report().weight_norm());
    for (const bool crashed : {false, true}) {
      if (crashed) CrashAndRestart();
      EXPECT_EQ(Weights("a"), state->weights().SerializeAsString()) << crashed;
      EXPECT_EQ(Get("a").revision(), after.revision());
    }
    LearnRows("a", 0, 100);
  }
  for (const int64_t none : {kept.revision() - 1, Get("a").revision() + 1}) {
    EXPECT_EQ(
        Call("HistoryService/RollBackModel", absl::StrCat("model: 'models/a' revision: ", none)),
        "NOT_FOUND REVISION_NOT_KEPT");
  }
}

TEST_F(HistoryTest, StreamsGoOnAfterARollbackAndNothingIsLearnedTwice) {
  grpc::ClientContext context;
  const auto predicting = predictions_->PredictStream(&context);
  const auto request = FromText<v1::PredictRequest>("model: 'models/a' examples {}");
  v1::PredictResponse response;
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  RawLearnStream stream(*learning_, "a", "p");
  stream.Open();
  stream.Ask(Rows(0, 50));
  EXPECT_EQ(Keep("k"), "OK");
  const v1::LearnResult last = stream.Ask(Rows(50, 100));
  RollBack("snapshot_id: 'k'");
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_RELOADED");
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  EXPECT_EQ(response.revision(), Get("a").revision());
  RawLearnStream resumed(*learning_, "a", "p");
  EXPECT_EQ(resumed.With(Claim(Get("a").uid(), last)).Open().next_offset(), 100);
  EXPECT_EQ(resumed.Ask(Rows(90, 110) + " first_offset: 90").duplicates(), 10);
  EXPECT_EQ(Get("a").report().examples(), 110);
  EXPECT_TRUE(resumed.Finish().ok());
}

TEST_F(HistoryTest, ACopyHasWhatTheModelHadAndLearnsAlone) {
  LearnRows("a", 0, 50);
  const auto copy =
      AnswerOf<v1::Model>("HistoryService/CopyModel", "name: 'models/a' new_name: 'models/b'");
  const v1::Model before = Get("a");
  EXPECT_NE(copy.uid(), before.uid());
  EXPECT_EQ(copy.revision(), before.revision());
  CrashAndRestart();
  EXPECT_EQ(Get("b").report().SerializeAsString(), Get("a").report().SerializeAsString());
  EXPECT_EQ(Weights("b"), Weights("a"));
  LearnRows("b", 50, 100);
  EXPECT_EQ(Get("a").revision(), before.revision());
  EXPECT_GT(Get("b").revision(), before.revision());
}

TEST_F(HistoryTest, ARenamedModelIsNotFoundByItsOldNameAndResumesUnderTheNew) {
  RawLearnStream stream(*learning_, "a", "p");
  const v1::StreamOpened opened = stream.Open();
  const v1::LearnResult result = stream.Ask(Rows(1, 2));
  const auto renamed =
      AnswerOf<v1::Model>("HistoryService/RenameModel", "name: 'models/a' new_name: 'models/b'");
  EXPECT_EQ(renamed.uid(), opened.model_uid());
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_NOT_FOUND");
  CrashAndRestart();
  RawLearnStream resumed(*learning_, "b", "p");
  EXPECT_EQ(resumed.With(Claim(opened.model_uid(), result)).Open().next_offset(), 1);
  EXPECT_TRUE(resumed.Finish().ok());
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/a'"), "NOT_FOUND MODEL_NOT_FOUND");
}

TEST_F(HistoryTest, SnapshotsAreListedAndDeleted) {
  for (const char* name : {"first", "second", "third"}) {
    EXPECT_EQ(Keep(name), "OK");
    LearnRows("a", 0, 10);
  }
  EXPECT_EQ(Keep("second"), "ALREADY_EXISTS SNAPSHOT_EXISTS");
  EXPECT_EQ(Call("HistoryService/DeleteSnapshot", "model: 'models/a' snapshot_id: 'third'"), "OK");
  CrashAndRestart();
  const auto all =
      AnswerOf<v1::ListSnapshotsResponse>("HistoryService/ListSnapshots", "model: 'models/a'");
  ASSERT_EQ(all.snapshots_size(), 2);
  EXPECT_EQ(all.snapshots(0).name(), "models/a/snapshots/first");
  EXPECT_GT(all.snapshots(1).revision(), all.snapshots(0).revision());
  EXPECT_GT(all.snapshots(1).size_bytes(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
