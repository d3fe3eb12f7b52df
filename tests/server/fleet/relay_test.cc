// A call that another server runs: messages, ends and errors pass through as they are, and each side learns of the
// other's end.
#include "server/fleet/relay.h"

#include <functional>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/fleet/follower_learn_session.h"
#include "server/fleet/routing.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/wait_until.h"

namespace perceptrond::relay_test {
namespace {

using namespace ::perceptrond::testing;

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kMostAnswerBytes = kMostBytes / 2;
constexpr int64_t kEpoch = 3;

// Sends one answer, then the end, once the first message came.
class AnswersOnce final : public Reactor {
 public:
  AnswersOnce(Call& call, const std::string& answer, grpc::Status end)
      : call_(call), bytes_(ToBytes(answer)), end_(std::move(end)) {}
  void Start() { call_.StartRead(&message_); }
  void OnReadDone(bool ok) override { ok ? call_.StartWrite(bytes_) : call_.Finish(end_); }
  void OnWriteDone(bool /*ok*/) override { call_.Finish(end_); }

 private:
  Call& call_;
  grpc::ByteBuffer message_;
  const grpc::ByteBuffer bytes_;
  const grpc::Status end_;
};

// Answers once the client has sent all, and does something before.
class AnswersAtEnd final : public Reactor {
 public:
  AnswersAtEnd(Call& call, std::function<void()> at_end)
      : call_(call), at_end_(std::move(at_end)) {}
  void Start() { call_.StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (ok) return Start();
    at_end_();
    call_.FinishWith(ToBytes("answer"));
  }

 private:
  Call& call_;
  const std::function<void()> at_end_;
  grpc::ByteBuffer message_;
};

class RelayTest : public ::testing::Test {
 protected:
  // Has the writer answer so.
  void Answer(const std::string& answer, const grpc::Status& end) {
    method_ = [answer, end](Call& call) {
      const auto reactor = std::make_shared<AnswersOnce>(call, answer, end);
      call.Bind(reactor);
      reactor->Start();
    };
  }
  // A call whose first message has reached the writer.
  std::unique_ptr<ClientCall> Begin() {
    auto call = std::make_unique<ClientCall>(front_.Connect(), "/call");
    EXPECT_TRUE(call->Write("first"));
    EXPECT_TRUE(counts_.AwaitBegun(1));
    return call;
  }

  CallCounts counts_;
  Call::Method method_ = Make<Echo>(counts_);
  RpcServer writer_{All(method_), /*threads=*/2};
  WriterCalls calls_{grpc::InsecureChannelCredentials(), "", kMostBytes, kMostAnswerBytes};
  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  MemoryBudget budget_{1 << 30, 1 << 28};
  InFlightMemory memory_{budget_, kLong};
  Workers workers_{1};
  Drain drain_;
  const Backend backend_{store_, drain_, workers_, memory_, kMostBytes};
  Destination to_{absl::StrCat("127.0.0.1:", writer_.port()), 7, kEpoch, absl::OkStatus()};
  RelayKind kind_ = RelayKind::kStream;
  FollowedRows rows_;
  const Call::Method relayed_ = [this](Call& call) {
    RunRelay(calls_, backend_, call, to_, kind_, rows_);
  };
  // Ends before what its calls use.
  RpcServer front_{All(relayed_), /*threads=*/2};
};

TEST_F(RelayTest, MessagesPassAsTheyAreAndInOrder) {
  ClientCall call(front_.Connect(), "/call");
  std::string echo;
  // Neither server needs to understand them.
  for (const std::string& message : {std::string("one"), std::string(), std::string("\xff\0", 2)}) {
    EXPECT_TRUE(call.Write(message));
    ASSERT_TRUE(call.Read(echo));
    EXPECT_EQ(echo, message);
  }
  call.WritesDone();
  EXPECT_FALSE(call.Read(echo));
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(RelayTest, TheWritersErrorReachesTheClientWithItsDetails) {
  const grpc::Status expected = ToGrpc(NotTheWriterError("models/m"));
  Answer("answer", expected);
  ClientCall call(front_.Connect(), "/call");
  call.Write("first");
  std::string answer;
  EXPECT_TRUE(call.Read(answer));
  EXPECT_EQ(answer, "answer");
  EXPECT_FALSE(call.Read(answer));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), expected.error_code());
  EXPECT_EQ(status.error_message(), expected.error_message());
  EXPECT_EQ(status.error_details(), expected.error_details());
}

TEST_F(RelayTest, ACallToAServerThatIsNoLongerTheWriterEnds) {
  method_ = Make<UntilCancel>(counts_);
  const auto call = Begin();
  calls_.EndStale([](uint64_t model_id) { return model_id == 7 ? kEpoch : kEpoch + 1; });
  EXPECT_EQ(counts_.cancelled(), 0);
  calls_.EndStale([](uint64_t /*model_id*/) { return kEpoch + 1; });
  EXPECT_EQ(Outcome(call->Finish()), "UNAVAILABLE WRITER_CHANGED");
  EXPECT_TRUE(counts_.AwaitCancelled(1));
}

TEST_F(RelayTest, TheClientsDeadlineIsTheWritersToo) {
  std::atomic<bool> has_deadline = false;
  method_ = [&has_deadline](Call& call) {
    const auto deadline = call.context().deadline();
    has_deadline = deadline != deadline.max();
    call.Bind(std::make_shared<Reactor>());
    call.Finish(grpc::Status::OK);
  };
  ClientCall call(front_.Connect(), "/call");
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(has_deadline);
}

TEST_F(RelayTest, ACancelledClientCancelsTheWritersCall) {
  method_ = Make<UntilCancel>(counts_);
  const auto call = Begin();
  call->Cancel();
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(counts_.AwaitCancelled(1));
  // No relay is left.
  calls_.EndAll(DrainingError());
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_F(RelayTest, AStreamEndsWhenTheDrainBegins) {
  const auto call = Begin();
  drain_.Begin();
  std::string message;
  while (call->Read(message)) {
  }
  EXPECT_EQ(Reason(call->Finish()), "DRAINING");
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_F(RelayTest, ACallThatIsNoStreamIsAnsweredDuringTheDrain) {
  kind_ = RelayKind::kCall;
  const auto call = Begin();
  drain_.Begin();
  std::string answer;
  EXPECT_TRUE(call->Read(answer));
  call->WritesDone();
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_F(RelayTest, AnUploadEndsWhenTheDrainBegins) {
  kind_ = RelayKind::kUpload;
  method_ = Make<UntilCancel>(counts_);
  const auto call = Begin();
  drain_.Begin();
  EXPECT_EQ(Reason(call->Finish()), "DRAINING");
  EXPECT_TRUE(counts_.AwaitCancelled(1));
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_F(RelayTest, AnUploadThatWasSentWholeIsAnsweredDuringTheDrain) {
  kind_ = RelayKind::kUpload;
  method_ = [this](Call& call) {
    const auto reactor = std::make_shared<AnswersAtEnd>(call, [this] { drain_.Begin(); });
    call.Bind(reactor);
    reactor->Start();
  };
  ClientCall call(front_.Connect(), "/call");
  EXPECT_TRUE(call.Write("first"));
  EXPECT_TRUE(call.WritesDone());
  std::string answer;
  EXPECT_TRUE(call.Read(answer));
  EXPECT_EQ(answer, "answer");
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_F(RelayTest, AMessageThatNoServerWouldTakeEndsTheCallWithWords) {
  ClientCall call(front_.Connect(), "/call");
  call.Write(std::string(kMostBytes + 1, 'x'));
  EXPECT_EQ(Reason(call.Finish()), "MESSAGE_TOO_LARGE");
}

TEST_F(RelayTest, AnAnswerMayBeAsLargeAsTheMemoryForItAndNoLarger) {
  // Its echo.
  std::string message(kMostAnswerBytes, 'x');
  std::string answer;
  EXPECT_TRUE(AskBytes(front_.Connect(), "/call", message, answer).ok());
  EXPECT_EQ(answer, message);
  message += 'x';
  EXPECT_EQ(AskBytes(front_.Connect(), "/call", message, answer).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RelayTest, WhatIsHeldOfAnUploadCounts) {
  kind_ = RelayKind::kUpload;
  {
    // Kept until the next one comes.
    ClientCall call(front_.Connect(), "/call");
    EXPECT_TRUE(call.Write(std::string(kMostBytes, 'x')));
    WaitUntil([&] { return budget_.reserved(MemoryUse::kRequests) == kMostBytes; });
  }
  WaitUntil([&] { return budget_.reserved(MemoryUse::kRequests) == 0; });
}

TEST_F(RelayTest, WithoutMemoryALargeMessageAndALargeAnswerAreRefused) {
  const std::string large(kMostAnswerBytes, 'x');
  Answer(large, grpc::Status::OK);
  budget_.Reserve(MemoryUse::kAnalyses, budget_.limit());
  std::string answer;
  for (const std::string& request : {large, std::string("first")})
    EXPECT_EQ(Reason(AskBytes(front_.Connect(), "/call", request, answer)), "MEMORY_EXHAUSTED");
  budget_.Release(MemoryUse::kAnalyses, budget_.limit());
  EXPECT_TRUE(AskBytes(front_.Connect(), "/call", large, answer).ok());
  EXPECT_EQ(answer, large);
}

}  // namespace
}  // namespace perceptrond::relay_test
