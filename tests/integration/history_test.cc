// Copies, other names and rollbacks over a real connection, streams among it, and a crash after each.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/access_fixture.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

v1::Example Row(int i) {
  return SparseExample(i % 3 == 0 ? -1 : 1,
                       {{0, static_cast<float>(i % 5) - 2}, {1, static_cast<float>(i % 7) - 3}});
}

class HistoryTest : public ServerTest {
 protected:
  HistoryTest() {
    Begin();
    CreateDense("a", 2);
  }
  void Begin() { history_ = v1::HistoryService::NewStub(channel_); }
  void CrashAndRestart() {
    server_.Kill();
    Restart();
    Begin();
  }
  void LearnRows(const std::string& id, int begin, int end) {
    v1::LearnRequest learn;
    learn.set_model("models/" + id);
    for (int i = begin; i < end; ++i) *learn.add_examples() = Row(i);
    const grpc::Status status = Learn(learn);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  grpc::Status Keep(const std::string& id, const std::string& snapshot) {
    grpc::ClientContext context;
    v1::CreateSnapshotRequest request;
    request.set_model("models/" + id);
    request.set_snapshot_id(snapshot);
    v1::Snapshot made;
    return history_->CreateSnapshot(&context, request, &made);
  }
  grpc::Status RollBack(const std::string& id, const std::string& snapshot,
                        v1::Model* model = nullptr) {
    grpc::ClientContext context;
    v1::RollBackModelRequest request;
    request.set_model("models/" + id);
    request.set_snapshot_id(snapshot);
    v1::Model own;
    return history_->RollBackModel(&context, request, model == nullptr ? &own : model);
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }

  std::unique_ptr<v1::HistoryService::Stub> history_;
};

TEST_F(HistoryTest, ARollbackIsDurableWhenItIsAnswered) {
  LearnRows("a", 0, 50);
  const v1::Model kept = Get("a");
  ASSERT_TRUE(Keep("a", "k").ok());
  LearnRows("a", 50, 200);
  const v1::Model before = Get("a");
  ASSERT_NE(before.weights().SerializeAsString(), kept.weights().SerializeAsString());
  v1::Model after;
  const grpc::Status status = RollBack("a", "k", &after);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(after.revision(), before.revision() + 1);
  EXPECT_EQ(after.uid(), before.uid());
  EXPECT_EQ(after.report().examples(), before.report().examples());
  EXPECT_EQ(after.report().radius(), before.report().radius());
  EXPECT_EQ(after.report().weight_norm(), kept.report().weight_norm());
  for (const bool crashed : {false, true}) {
    if (crashed) CrashAndRestart();
    EXPECT_EQ(Weights("a"), kept.weights().SerializeAsString()) << crashed;
    EXPECT_EQ(Get("a").revision(), after.revision());
  }
  // The model's own snapshots replace one another meanwhile; the kept one stays.
  LearnRows("a", 0, 100);
  ASSERT_TRUE(RollBack("a", "k").ok());
  EXPECT_EQ(Weights("a"), kept.weights().SerializeAsString());
}

TEST_F(HistoryTest, ARevisionAfterTheOldestSnapshotIsRestored) {
  LearnRows("a", 0, 50);
  const int64_t kept = Get("a").revision();
  ASSERT_TRUE(Keep("a", "k").ok());
  LearnRows("a", 50, 60);
  const v1::Model then = Get("a");
  ASSERT_GT(then.revision(), kept);
  LearnRows("a", 60, 200);
  CrashAndRestart();
  const v1::Model before = Get("a");
  v1::RollBackModelRequest request;
  request.set_model("models/a");
  const auto roll_back = [&](int64_t revision, v1::Model& model) {
    request.set_revision(revision);
    grpc::ClientContext context;
    return history_->RollBackModel(&context, request, &model);
  };
  v1::Model after;
  for (const int64_t none : {kept - 1, before.revision() + 1}) {
    const grpc::Status refused = roll_back(none, after);
    EXPECT_EQ(Reason(refused), "REVISION_NOT_KEPT");
    EXPECT_THAT(refused.error_message(),
                ::testing::HasSubstr(absl::StrCat(kept, " to ", before.revision())));
  }
  EXPECT_EQ(BadField(roll_back(-1, after)), "revision");
  const grpc::Status status = roll_back(then.revision(), after);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(after.revision(), before.revision() + 1);
  EXPECT_EQ(after.report().weight_norm(), then.report().weight_norm());
  for (const bool crashed : {false, true}) {
    if (crashed) CrashAndRestart();
    EXPECT_EQ(Weights("a"), then.weights().SerializeAsString()) << crashed;
  }
  request.set_snapshot_id("k");
  EXPECT_EQ(BadField(roll_back(kept, after)), "snapshot_id");
}

TEST_F(HistoryTest, AProducerGoesOnAfterARollbackAndNothingIsLearnedTwice) {
  RawLearnStream stream(*learning_, "a", "p");
  stream.Open();
  v1::LearnStreamRequest request;
  const auto send = [&](RawLearnStream& to, int begin, int end) {
    request.clear_examples();
    request.set_first_offset(begin);
    for (int i = begin; i < end; ++i) *request.add_examples() = Row(i);
    return to.Ask(request);
  };
  send(stream, 0, 50);
  ASSERT_TRUE(Keep("a", "k").ok());
  const v1::LearnResult last = send(stream, 50, 100);
  ASSERT_TRUE(RollBack("a", "k").ok());
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_RELOADED");
  RawLearnStream resumed(*learning_, "a", "p");
  v1::Producer::Resume& claim = *resumed.first().mutable_producer()->mutable_resume();
  claim.set_model_uid(Get("a").uid());
  claim.set_acknowledged_offset(last.acknowledged_offset());
  claim.set_acknowledged_revision(last.revision());
  EXPECT_EQ(resumed.Open().next_offset(), 100);
  EXPECT_EQ(send(resumed, 90, 110).duplicates(), 10);
  EXPECT_EQ(Get("a").report().examples(), 110);
  EXPECT_TRUE(resumed.Finish().ok());
}

TEST_F(HistoryTest, PredictionsGoOnThroughARollback) {
  LearnRows("a", 0, 50);
  ASSERT_TRUE(Keep("a", "k").ok());
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request;
  request.set_model("models/a");
  *request.add_examples() = Row(1);
  for (int i = 0; i < 20; ++i) {
    v1::PredictResponse response;
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_FALSE(response.has_error());
    LearnRows("a", 50 + i, 60 + i);
    ASSERT_TRUE(RollBack("a", "k").ok());
  }
}

TEST_F(HistoryTest, ACopyHasWhatTheModelHadAndLearnsByItself) {
  LearnRows("a", 0, 50);
  grpc::ClientContext context;
  v1::CopyModelRequest request;
  request.set_name("models/a");
  request.set_new_name("models/b");
  v1::Model copy;
  const grpc::Status status = history_->CopyModel(&context, request, &copy);
  ASSERT_TRUE(status.ok()) << status.error_message();
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
  v1::LearnStreamRequest row;
  *row.add_examples() = Row(1);
  const v1::LearnResult result = stream.Ask(row);
  grpc::ClientContext context;
  v1::RenameModelRequest request;
  request.set_name("models/a");
  request.set_new_name("models/b");
  v1::Model renamed;
  const grpc::Status status = history_->RenameModel(&context, request, &renamed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(renamed.uid(), opened.model_uid());
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_NOT_FOUND");
  CrashAndRestart();
  RawLearnStream resumed(*learning_, "b", "p");
  v1::Producer::Resume& claim = *resumed.first().mutable_producer()->mutable_resume();
  claim.set_model_uid(opened.model_uid());
  claim.set_acknowledged_offset(result.acknowledged_offset());
  EXPECT_EQ(resumed.Open().next_offset(), 1);
  EXPECT_TRUE(resumed.Finish().ok());
  grpc::ClientContext get_context;
  v1::GetModelRequest get;
  get.set_name("models/a");
  v1::Model none;
  EXPECT_EQ(Reason(models_->GetModel(&get_context, get, &none)), "MODEL_NOT_FOUND");
}

TEST_F(HistoryTest, ListsWhatItKeeps) {
  LearnRows("a", 0, 10);
  ASSERT_TRUE(Keep("a", "first").ok());
  LearnRows("a", 10, 20);
  ASSERT_TRUE(Keep("a", "second").ok());
  EXPECT_EQ(Reason(Keep("a", "second")), "SNAPSHOT_EXISTS");
  EXPECT_EQ(BadField(Keep("a", "no/slash")), "snapshot_id");
  CrashAndRestart();
  grpc::ClientContext context;
  v1::ListSnapshotsRequest request;
  request.set_model("models/a");
  v1::ListSnapshotsResponse all;
  ASSERT_TRUE(history_->ListSnapshots(&context, request, &all).ok());
  ASSERT_EQ(all.snapshots_size(), 2);
  EXPECT_EQ(all.snapshots(0).name(), "models/a/snapshots/first");
  EXPECT_GT(all.snapshots(1).revision(), all.snapshots(0).revision());
  EXPECT_GT(all.snapshots(1).size_bytes(), 0);
}

using HistoryAccessTest = AccessTest;

TEST_F(HistoryAccessTest, BothNamesNeedTheRole) {
  const auto history = v1::HistoryService::NewStub(channel_);
  ASSERT_TRUE(CreateAs("admin", "spam-a").ok());
  const auto copy_as = [&](const std::string& principal) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::CopyModelRequest request;
    request.set_name("models/spam-a");
    request.set_new_name("models/other");
    v1::Model copy;
    return history->CopyModel(&context, request, &copy).error_code();
  };
  EXPECT_EQ(copy_as("trainer"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(copy_as("admin"), grpc::StatusCode::OK);
  for (const char* principal : {"reader", "trainer"}) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::RollBackModelRequest request;
    request.set_model("models/spam-a");
    request.set_snapshot_id("k");
    v1::Model model;
    EXPECT_EQ(history->RollBackModel(&context, request, &model).error_code(),
              grpc::StatusCode::PERMISSION_DENIED);
  }
}

}  // namespace
}  // namespace perceptrond::testing
