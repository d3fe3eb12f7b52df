// A model's file over a real connection: in any pieces, beside drains and kills, it becomes a whole
// model or none. core/store/model_history_test.cc has damaged files and those that nobody wrote. And streams across a snapshot, a
// rollback, another name and a kill; core/store and server/fleet have the rest.
#include "absl/strings/str_cat.h"
#include "inference/inference_service.pb.h"
#include "tests/integration/access_fixture.h"

namespace perceptrond::testing {
namespace {

class TransferTest : public Transfers<ServerTest> {
 protected:
  explicit TransferTest(std::vector<std::string> flags = {}) : Transfers(std::move(flags)) {
    CreateDense("a", 2);
    Teach("a",
          "examples { dense { values: [1, 2] } label: 1 } "
          "examples { dense { values: [3, 1] } label: -1 }");
    file_ = Export("a");
  }
  // In two pieces.
  grpc::Status Import(const std::string& file, const std::string& id,
                      const std::string& request_id = "") {
    ImportCall call(*history_, id, request_id);
    call.SendAll(file, file.size() / 2 + 1);
    return call.Finish();
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }

  std::string file_;
};

TEST_F(TransferTest, PiecesOfAnySizeMakeTheSameModelAndARequestThatComesAgainIsAnswered) {
  ImportCall call(*history_, "b", "one");
  ASSERT_TRUE(call.Send(""));
  for (const char byte : file_) {
    ASSERT_TRUE(call.Send(std::string(1, byte)));
    ASSERT_TRUE(call.Send(""));
  }
  EXPECT_EQ(Outcome(call.Finish()), "OK");
  EXPECT_EQ(call.model().revision(), Get("a").revision());
  EXPECT_EQ(Weights("b"), Weights("a"));
  EXPECT_EQ(Outcome(Import(file_, "b", "one")), "OK");
  EXPECT_EQ(Outcome(Import(file_, "b", "another")), "ALREADY_EXISTS MODEL_EXISTS");
  CrashAndRestart();
  EXPECT_EQ(Weights("b"), Weights("a"));
}

TEST_F(TransferTest, AnUploadThatIsNotTheWholeFileChangesNothing) {
  EXPECT_EQ(Outcome(Import(file_.substr(0, file_.size() - 1), "b")),
            "INVALID_ARGUMENT BAD_MODEL_FILE piece");
  ImportCall renamed(*history_, "b");
  ASSERT_TRUE(renamed.Send(file_));
  renamed.next().set_new_name("models/c");
  renamed.Send("");
  EXPECT_EQ(Outcome(renamed.Finish()), "INVALID_ARGUMENT INVALID_FIELD new_name");
  EXPECT_EQ(Reason(CallRaw("/perceptron.v1.HistoryService/ImportModel", {})), "MALFORMED_MESSAGE");
  ImportCall cancelled(*history_, "b");
  ASSERT_TRUE(cancelled.Send(file_.substr(0, file_.size() / 2)));
  cancelled.Cancel();
  EXPECT_EQ(cancelled.AwaitEnd().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(Exists("b"));
  EXPECT_FALSE(Exists("c"));
}

class LimitedTransferTest : public TransferTest {
 protected:
  LimitedTransferTest() : TransferTest({"--max-message-bytes=64KiB", "--max-models=2"}) {}
};

// Without the end of the file, and of the stream.
TEST_F(LimitedTransferTest, AnImportThatCannotSucceedEndsBeforeTheFileDoes) {
  ImportCall large(*history_, "b");
  ASSERT_TRUE(large.Send(file_));
  large.Send(std::string(64 << 10, 'x'));
  EXPECT_EQ(Reason(large.AwaitEnd()), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(Outcome(Import(file_, "b")), "OK");
  for (const auto& [id, reason] : {std::pair{"a", "MODEL_EXISTS"}, {"c", "MODEL_LIMIT"}}) {
    ImportCall call(*history_, id);
    ASSERT_TRUE(call.Send(file_.substr(0, file_.size() - 1)));
    EXPECT_EQ(Reason(call.AwaitEnd()), reason);
  }
  EXPECT_FALSE(Exists("c"));
}

// With a model whose file does not fit into the windows of a connection.
class LargeTransferTest : public Transfers<ServerTest> {
 protected:
  explicit LargeTransferTest(std::vector<std::string> flags = {}) : Transfers(std::move(flags)) {
    CreateLarge("a", 1);
    file_ = Export("a");
  }
  std::string file_;
};

TEST_F(LargeTransferTest, ADrainingServerSendsExportsToTheirEndAndTakesNothingNew) {
  const auto history = NarrowHistory();
  // The server stays as long as this is not read.
  ExportCall exported(*history, "a");
  ASSERT_TRUE(exported.ReadPiece());
  ImportCall imported(*history_, "b");
  imported.SendAll(file_.substr(0, file_.size() / 2));
  server_.Signal(SIGTERM);
  const grpc::Status cut = imported.AwaitEnd();
  EXPECT_EQ(Outcome(cut), "UNAVAILABLE DRAINING");
  EXPECT_TRUE(RetryDelay(cut).has_value());
  for (const char* method :
       {"PredictionService/Predict", "PredictionService/PredictStream", "LearningService/Learn",
        "LearningService/LearnStream", "PredictionService/Explain", "AnalysisService/Analyze"})
    EXPECT_EQ(Call(method, "model: 'models/a'"), "UNAVAILABLE DRAINING") << method;
  const std::string inference = "inference.GRPCInferenceService/";
  EXPECT_EQ(Call(inference + "ModelInfer", "model_name: 'a'"), "UNAVAILABLE DRAINING");
  EXPECT_FALSE(AnswerOf<::inference::ServerReadyResponse>(inference + "ServerReady", "").ready());
  EXPECT_FALSE(
      AnswerOf<::inference::ModelReadyResponse>(inference + "ModelReady", "name: 'a'").ready());
  EXPECT_TRUE(AnswerOf<::inference::ServerLiveResponse>(inference + "ServerLive", "").live());
  EXPECT_EQ(Outcome(exported.Finish()), "OK");
  EXPECT_TRUE(IsAsLong(exported.file(), file_));
  EXPECT_EQ(server_.Wait(), 0);
  RestartAfterEnd();
  EXPECT_FALSE(Exists("b"));
}

class ShortDrainTest : public LargeTransferTest {
 protected:
  ShortDrainTest() : LargeTransferTest({"--drain-timeout=0"}) {}
};

TEST_F(ShortDrainTest, AnExportThatTakesLongerThanTheDrainSaysWhyItEnds) {
  const auto history = NarrowHistory();
  ExportCall call(*history, "a");
  ASSERT_TRUE(call.ReadPiece());
  server_.Signal(SIGTERM);
  EXPECT_NE(server_.AwaitLog("calls exceed the drain timeout"), "");
  EXPECT_EQ(Outcome(call.Finish()), "UNAVAILABLE DRAINING");
  EXPECT_EQ(server_.Wait(), 0);
}

// Killed while the rest of the file is on its way, or while the model is made.
TEST_F(LargeTransferTest, AnImportDuringWhichTheServerIsKilledIsWholeOrAbsent) {
  const auto state = [this](const std::string& id) {
    const v1::Model model = Get(id, v1::MODEL_VIEW_UNSPECIFIED);
    return AnswerOf<v1::ListWeightsResponse>("ModelService/ListWeights",
                                             "model: 'models/" + id + "'")
               .weights()
               .SerializeAsString() +
           model.report().SerializeAsString();
  };
  for (const bool sent : {false, true, true}) {
    ImportCall call(*history_, "b");
    call.SendAll(sent ? file_ : file_.substr(0, file_.size() / 2));
    if (sent) call.HalfClose();
    CrashAndRestart();
    const grpc::Status status = call.AwaitEnd();
    const bool exists = Exists("b");
    EXPECT_TRUE(exists || !status.ok()) << "what was answered stays";
    EXPECT_TRUE(sent || !exists);
    if (exists) {
      EXPECT_TRUE(state("b") == state("a"));
      EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/b'"), "OK");
    }
    // The name is free.
    ImportCall again(*history_, "b");
    again.SendAll(file_);
    EXPECT_EQ(Outcome(again.Finish()), "OK");
    EXPECT_TRUE(state("b") == state("a"));
    EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/b'"), "OK");
  }
}

class TransferAccessTest : public Transfers<AccessTest> {
 protected:
  TransferAccessTest() {
    CreateLarge("spam-a", 1, kAdminToken);
    file_ = Export("spam-a", kAdminToken);
  }
  std::string file_;
};

TEST_F(TransferAccessTest, AMessageThatIsDeniedOrMalformedIsNotTheEndOfTheFile) {
  {
    ImportCall call(*history_, "spam-b", "", kKeeperToken);
    call.SendAll(file_);
    call.next().set_new_name("models/other");
    call.Send("");
    EXPECT_EQ(Reason(call.AwaitEnd()), "PERMISSION_DENIED");
  }
  std::vector<std::string> messages;
  for (size_t at = 0; at < file_.size(); at += 1 << 20) {
    v1::ImportModelRequest piece;
    if (at == 0) piece.set_new_name("models/spam-b");
    piece.set_piece(file_.substr(at, 1 << 20));
    messages.push_back(piece.SerializeAsString());
  }
  const std::string method = "/perceptron.v1.HistoryService/ImportModel";
  messages.push_back("\xff");
  EXPECT_EQ(Reason(CallRaw(method, messages, nullptr, kKeeperToken)), "MALFORMED_MESSAGE");
  EXPECT_FALSE(Exists("spam-b", kAdminToken));
  // The file itself is good.
  messages.pop_back();
  EXPECT_EQ(Outcome(CallRaw(method, messages, nullptr, kKeeperToken)), "OK");
}

class HistoryTest : public ServerTest {
 protected:
  HistoryTest() { CreateDense("a", 2); }
  static std::string Rows(int begin, int end) {
    std::string rows;
    for (int i = begin; i < end; ++i)
      absl::StrAppend(&rows, " examples { dense { values: [", i % 5 - 2, ", ", i % 7 - 3,
                      "] } label: ", i % 3 == 0 ? -1 : 1, " }");
    return rows;
  }
  std::string Keep(const std::string& snapshot) {
    return Call("HistoryService/CreateSnapshot",
                "model: 'models/a' snapshot_id: '" + snapshot + "'");
  }
};

TEST_F(HistoryTest, StreamsGoOnAfterARollbackUnderANewNameAndAKillAndNothingIsLearnedTwice) {
  grpc::ClientContext context;
  const auto predicting = predictions_->PredictStream(&context);
  auto request = FromText<v1::PredictRequest>("model: 'models/a' examples {}");
  v1::PredictResponse response;
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  RawLearnStream stream(*learning_, "a", "p");
  stream.Open();
  stream.Ask(Rows(0, 50));
  EXPECT_EQ(Keep("k"), "OK");
  const std::string at_snapshot = Get("a").weights().SerializeAsString();
  const v1::LearnResult last = stream.Ask(Rows(50, 100));
  EXPECT_EQ(Call("HistoryService/RollBackModel", "model: 'models/a' snapshot_id: 'k'"), "OK");
  EXPECT_EQ(Call("HistoryService/RenameModel", "name: 'models/a' new_name: 'models/b'"), "OK");
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_RELOADED");
  request.set_model("models/b");
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  EXPECT_EQ(response.revision(), Get("b").revision());
  server_.Kill();
  Restart();
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/a'"), "NOT_FOUND MODEL_NOT_FOUND");
  const v1::Model after = Get("b");
  EXPECT_EQ(after.weights().SerializeAsString(), at_snapshot);
  EXPECT_GT(after.revision(), last.revision());
  RawLearnStream resumed(*learning_, "b", "p");
  resumed.With(absl::StrCat("producer { resume { model_uid: '", after.uid(),
                            "' acknowledged_offset: ", last.acknowledged_offset(),
                            " acknowledged_revision: ", last.revision(), " } }"));
  EXPECT_EQ(resumed.Open().next_offset(), 100);
  EXPECT_EQ(resumed.Ask(Rows(90, 110) + " first_offset: 90").duplicates(), 10);
  EXPECT_EQ(Get("b").report().examples(), 110);
  EXPECT_TRUE(resumed.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
