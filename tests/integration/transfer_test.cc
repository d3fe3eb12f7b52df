// A model's file over a real connection: in any pieces, and beside other transfers, it becomes a whole model
// or none.
#include <thread>

#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class TransferTest : public Transfers<ServerTest> {
 protected:
  explicit TransferTest(std::vector<std::string> flags = {}) : Transfers(std::move(flags)) {
    CreateDense("a", 2);
    v1::LearnRequest learn;
    learn.set_model("models/a");
    for (int i = 0; i < 50; ++i) {
      const auto x = static_cast<float>(i % 5) - 2;
      *learn.add_examples() = SparseExample(i % 3 == 0 ? -1 : 1, {{0, x}, {1, 1}});
    }
    EXPECT_TRUE(Learn(learn).ok());
    file_ = Export("a");
  }
  // In two pieces.
  grpc::Status Import(const std::string& file, const std::string& id, const std::string& request_id,
                      v1::Model* model = nullptr) {
    ImportCall call(*history_, id, request_id);
    call.SendAll(file, file.size() / 2 + 1);
    grpc::Status status = call.Finish();
    if (model != nullptr) *model = call.model();
    return status;
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }

  std::string file_;
};

TEST_F(TransferTest, TheSameRequestIsAnsweredFromWhatItMade) {
  EXPECT_TRUE(Import(file_, "b", "one").ok());
  EXPECT_TRUE(Import(file_, "b", "one").ok());
  EXPECT_EQ(Reason(Import(file_, "b", "another")), "MODEL_EXISTS");
  CrashAndRestart();
  EXPECT_EQ(Weights("b"), Weights("a"));
}

TEST_F(TransferTest, APartOfAFileChangesNothing) {
  EXPECT_EQ(Reason(Import(file_.substr(0, file_.size() - 1), "b", "")), "BAD_MODEL_FILE");
  EXPECT_EQ(BadField(Import(file_, "no/slash", "")), "new_name");
  ImportCall renamed(*history_, "b");
  ASSERT_TRUE(renamed.Send(file_));
  renamed.next().set_new_name("models/c");
  renamed.Send("");
  EXPECT_EQ(BadField(renamed.Finish()), "new_name");
  EXPECT_EQ(Reason(CallRaw("/perceptron.v1.HistoryService/ImportModel", {})), "MALFORMED_MESSAGE");
  EXPECT_FALSE(Exists("b"));
  EXPECT_FALSE(Exists("c"));
}

TEST_F(TransferTest, ACancelledImportChangesNothing) {
  ImportCall call(*history_, "b");
  ASSERT_TRUE(call.Send(file_.substr(0, file_.size() / 2)));
  call.Cancel();
  EXPECT_EQ(call.AwaitEnd().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(Exists("b"));
}

TEST_F(TransferTest, AFileWithOtherBytesInTheMiddleChangesNothing) {
  std::string changed = file_;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
  const grpc::Status status = Import(changed, "b", "");
  EXPECT_EQ(Reason(status), "BAD_MODEL_FILE");
  EXPECT_FALSE(Exists("b"));
}

TEST_F(TransferTest, AFileInANewerFormatIsNotTakenForADamagedOne) {
  std::string newer = file_;
  newer[newer.find('1')] = '2';
  const grpc::Status status = Import(newer, "b", "");
  EXPECT_EQ(Reason(status), "BAD_MODEL_FILE");
  EXPECT_THAT(status.error_message(), HasSubstr("newer server"));
}

TEST_F(TransferTest, PiecesOfNoByteAndOfOneByteMakeTheSameModel) {
  ImportCall call(*history_, "b");
  ASSERT_TRUE(call.Send(""));
  for (const char byte : file_) {
    ASSERT_TRUE(call.Send(std::string(1, byte)));
    ASSERT_TRUE(call.Send(""));
  }
  const grpc::Status status = call.Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(call.model().revision(), Get("a").revision());
  EXPECT_EQ(Weights("b"), Weights("a"));
}

TEST_F(TransferTest, AnImportThatCannotSucceedEndsBeforeTheFileDoes) {
  ImportCall call(*history_, "a");
  ASSERT_TRUE(call.Send(file_.substr(0, file_.size() - 1)));
  // Without the end of the file, and of the stream.
  EXPECT_EQ(Reason(call.AwaitEnd()), "MODEL_EXISTS");
}

TEST_F(TransferTest, OfTwoImportsUnderOneNameOneMakesTheModel) {
  for (int round = 0; round < 20; ++round) {
    const std::string id = "b" + std::to_string(round);
    ImportCall one(*history_, id);
    ImportCall other(*history_, id);
    // Neither is refused early.
    for (ImportCall* call : {&one, &other}) ASSERT_TRUE(call->Send(file_));
    grpc::Status ends[2];
    std::thread first([&] { ends[0] = one.Finish(); });
    ends[1] = other.Finish();
    first.join();
    EXPECT_NE(ends[0].ok(), ends[1].ok());
    EXPECT_EQ(Reason(ends[ends[0].ok() ? 1 : 0]), "MODEL_EXISTS");
    EXPECT_EQ(Weights(id), Weights("a"));
  }
}

TEST_F(TransferTest, OneRequestThatIsSentTwiceAtOnceMakesOneModel) {
  v1::Model made[2];
  grpc::Status ends[2];
  std::thread first([&] { ends[0] = Import(file_, "b", "once", &made[0]); });
  ends[1] = Import(file_, "b", "once", &made[1]);
  first.join();
  EXPECT_TRUE(ends[0].ok() && ends[1].ok()) << ends[0].error_message() << ends[1].error_message();
  EXPECT_EQ(made[0].uid(), made[1].uid());
}

class LimitedTransferTest : public TransferTest {
 protected:
  LimitedTransferTest() : TransferTest({"--max-message-bytes=64KiB", "--max-models=2"}) {}
};

TEST_F(LimitedTransferTest, APieceBeyondTheLimitEndsTheImport) {
  ImportCall call(*history_, "b");
  ASSERT_TRUE(call.Send(file_));
  call.Send(std::string(64 << 10, 'x'));
  const grpc::Status status = call.AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "MESSAGE_TOO_LARGE");
  EXPECT_THAT(status.error_message(), HasSubstr("smaller pieces"));
  EXPECT_FALSE(Exists("b"));
}

TEST_F(LimitedTransferTest, AModelTooManyIsRefusedBeforeTheFileEnds) {
  EXPECT_TRUE(Import(file_, "b", "").ok());
  ImportCall call(*history_, "c");
  ASSERT_TRUE(call.Send(file_.substr(0, file_.size() - 1)));
  EXPECT_EQ(Reason(call.AwaitEnd()), "MODEL_LIMIT");
  EXPECT_FALSE(Exists("c"));
}

}  // namespace
}  // namespace perceptrond::testing
