// The drain and the death of a server during a transfer: an import is whole or absent, and a client learns what to do.
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

class TransferDrainTest : public Transfers<ServerTest> {
 protected:
  explicit TransferDrainTest(std::vector<std::string> flags = {}) : Transfers(std::move(flags)) {
    CreateLarge("a", 1);
  }
  // All weights and the report, without what is of one server's time.
  std::string StateOf(const std::string& id) {
    std::string state = Get(id, v1::MODEL_VIEW_UNSPECIFIED).report().SerializeAsString();
    v1::ListWeightsRequest request;
    request.set_model("models/" + id);
    do {
      grpc::ClientContext context;
      v1::ListWeightsResponse page;
      const grpc::Status status = models_->ListWeights(&context, request, &page);
      EXPECT_TRUE(status.ok()) << status.error_message();
      if (!status.ok()) return "";
      state += page.weights().SerializeAsString();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return state;
  }
};

TEST_F(TransferDrainTest, AnImportThatHasNotArrivedEndsWithTheDrainAndLeavesNoModel) {
  const std::string file = Export("a");
  ImportCall call(*history_, "b");
  call.SendAll(file.substr(0, file.size() / 2));
  server_.Signal(SIGTERM);
  const grpc::Status status = call.AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "DRAINING");
  EXPECT_TRUE(RetryDelay(status).has_value());
  EXPECT_EQ(server_.Wait(), 0);
  RestartAfterEnd();
  EXPECT_FALSE(Exists("b"));
}

TEST_F(TransferDrainTest, AnImportThatIsAnsweredDuringTheDrainIsThere) {
  const std::string file = Export("a");
  ImportCall call(*history_, "b");
  call.SendAll(file);
  call.HalfClose();
  server_.Signal(SIGTERM);
  const grpc::Status status = call.AwaitEnd();
  if (!status.ok()) {
    EXPECT_EQ(Reason(status), "DRAINING");
  }
  EXPECT_EQ(server_.Wait(), 0);
  RestartAfterEnd();
  EXPECT_EQ(Exists("b"), status.ok());
  if (status.ok()) {
    EXPECT_TRUE(StateOf("b") == StateOf("a"));
  }
}

TEST_F(TransferDrainTest, AnExportIsSentToItsEndDuringTheDrain) {
  const std::string file = Export("a");
  const auto history = NarrowHistory();
  ExportCall call(*history, "a");
  ASSERT_TRUE(call.ReadPiece());
  server_.Signal(SIGTERM);
  // Of a call that comes now.
  grpc::Status late;
  do {
    ExportCall another(*history_, "a");
    late = another.Finish();
  } while (late.ok());
  EXPECT_EQ(Reason(late), "DRAINING");
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(IsAsLong(call.file(), file));
  EXPECT_EQ(server_.Wait(), 0);
}

class ShortDrainTest : public TransferDrainTest {
 protected:
  ShortDrainTest() : TransferDrainTest({"--drain-timeout=100ms"}) {}
};

TEST_F(ShortDrainTest, AnExportThatTakesLongerThanTheDrainSaysWhyItEnds) {
  const auto history = NarrowHistory();
  ExportCall call(*history, "a");
  ASSERT_TRUE(call.ReadPiece());
  server_.Signal(SIGTERM);
  EXPECT_NE(server_.AwaitLog("calls exceed the drain timeout"), "");
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "DRAINING");
  EXPECT_EQ(server_.Wait(), 0);
}

TEST_F(TransferDrainTest, AnImportDuringWhichTheServerIsKilledIsWholeOrAbsent) {
  using Clock = std::chrono::steady_clock;
  const std::string file = Export("a");
  // What an import takes once all of it was sent, to kill the server at any time of it and soon after.
  Clock::duration whole;
  {
    ImportCall call(*history_, "measured");
    call.SendAll(file);
    const Clock::time_point begin = Clock::now();
    ASSERT_TRUE(call.Finish().ok());
    whole = Clock::now() - begin;
  }
  constexpr int kRounds = 8;
  int made = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string id = "b" + std::to_string(round);
    ImportCall call(*history_, id);
    call.SendAll(file);
    call.HalfClose();
    std::this_thread::sleep_for(whole * round / (kRounds - 2));
    CrashAndRestart();
    const grpc::Status status = call.AwaitEnd();
    const bool exists = Exists(id);
    // What was answered stays.
    if (status.ok()) {
      EXPECT_TRUE(exists);
    }
    if (exists) {
      EXPECT_TRUE(StateOf(id) == StateOf("a"));
    }
    made += exists ? 1 : 0;
    // The name is free, or the same request would be answered.
    ImportCall again(*history_, id);
    again.SendAll(file);
    EXPECT_EQ(again.Finish().ok(), !exists);
  }
  std::printf("%d of %d were made\n", made, kRounds);
}

}  // namespace
}  // namespace perceptrond::testing
