// Where a call runs: here, on the server that writes its model, or nowhere. A call that another server runs: messages, ends and errors
// pass through as they are, and each side learns of the other's end.
#include "server/fleet/relay.h"

#include <functional>

#include "perceptron/v1/model_service.pb.h"
#include "server/fleet/follower_learn_session.h"
#include "server/fleet/routing.h"
#include "tests/server/fleet/fleet_nodes.h"

namespace perceptrond::relay_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

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

constexpr char kModel[] = "models/m";

std::string Request(const std::string& model) {
  v1::GetModelRequest request;
  request.set_name(model);
  return request.SerializeAsString();
}

// Calls of GetModel are echoed here, and so are those that go elsewhere, with other counts.
class RoutingTest : public ::testing::Test {
 protected:
  RoutingTest() {
    const auto& get_model =
        *v1::GetModelRequest::descriptor()->file()->service(0)->FindMethodByName("GetModel");
    for (const Without without : {Without::kFail, Without::kHere})
      methods_.push_back({MethodAccess(get_model), without, [this](Call& call) { here_(call); }});
  }
  RpcServer& Serve(Without without) {
    wrapped_ = routing_.Wrap(methods_[without == Without::kFail ? 0 : 1]);
    server_ = std::make_unique<RpcServer>(All(wrapped_), /*threads=*/2);
    return *server_;
  }
  // The first message of a stream, and its echo.
  grpc::Status Echoed(const std::string& message, Without without = Without::kFail) {
    std::string echo;
    ClientCall call(Serve(without).Connect(), "/call");
    call.Write(message);
    const bool echoed = call.Read(echo);
    call.WritesDone();
    const grpc::Status status = call.Finish();
    EXPECT_EQ(echoed, status.ok());
    if (echoed) {
      EXPECT_EQ(echo, message);
    }
    return status;
  }

  FleetMember member_;
  const uint64_t id_ = member_.Create(kModel);
  MemoryBudget budget_{1 << 30, 1 << 28};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  Workers workers_{1};
  CallCounts ran_here_;
  CallCounts ran_there_;
  Call::Method here_ = Make<Echo>(ran_here_);
  Destination destination_;
  Routing routing_{{member_.store(), drain_, workers_, memory_, kMostBytes},
                   [this](Call& call, const Destination& to, const RoutedMethod& /*method*/) {
                     destination_ = to;
                     Make<Echo>(ran_there_)(call);
                   }};
  std::vector<RoutedMethod> methods_;
  Call::Method wrapped_;
  // Ends before what its calls use.
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RoutingTest, ACallWhoseModelIsWrittenHereRunsHere) {
  member_.WriteHere();
  EXPECT_TRUE(Echoed(Request(kModel)).ok());
  EXPECT_EQ(ran_here_.begun(), 1);
  EXPECT_EQ(ran_there_.begun(), 0);
}

TEST_F(RoutingTest, ACallWhoseModelIsWrittenElsewhereRunsThereWithItsFirstMessage) {
  const int64_t epoch = member_.WriteAt("writer:7602");
  // In memory or not.
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Echoed(Request(kModel)).ok());
    EXPECT_EQ(destination_.address, "writer:7602");
    EXPECT_EQ(destination_.model_id, id_);
    EXPECT_EQ(destination_.epoch, epoch);
    ASSERT_OK(member_.store().Acquire(kModel).status());
  }
  EXPECT_EQ(ran_here_.begun(), 0);
  EXPECT_EQ(ran_there_.begun(), 2);
}

TEST_F(RoutingTest, WithoutAWriterACallThatNeedsOneFailsAndSaysWhenToTryAgain) {
  const grpc::Status status = Echoed(Request(kModel), Without::kFail);
  EXPECT_EQ(Outcome(status), "UNAVAILABLE NOT_THE_WRITER");
  EXPECT_NE(status.error_message().find(kModel), std::string::npos) << status.error_message();
  EXPECT_TRUE(RetryDelay(status).has_value());
  EXPECT_EQ(ran_here_.begun() + ran_there_.begun(), 0);
}

TEST_F(RoutingTest, WithoutAWriterACallThatOnlyReadsRunsHere) {
  EXPECT_TRUE(Echoed(Request(kModel), Without::kHere).ok());
  EXPECT_EQ(ran_here_.begun(), 1);
}

// The method has its own answer to each.
TEST_F(RoutingTest, UnknownModelsMissingNamesAndMalformedMessagesAreForTheMethodHere) {
  member_.WriteAt("writer:7602");
  EXPECT_TRUE(Echoed(Request("models/unknown")).ok());
  EXPECT_TRUE(Echoed("").ok());
  EXPECT_TRUE(Echoed("\xff\xff\xff").ok());
  EXPECT_EQ(ran_here_.begun(), 3);
  EXPECT_EQ(ran_there_.begun(), 0);
}

TEST_F(RoutingTest, AMessageIsBoundedAndCountedBeforeItsModelIsLookedUp) {
  member_.WriteAt("writer:7602");
  const std::string large = Request(std::string(kMostBytes / 2, 'x'));
  EXPECT_EQ(Reason(Echoed(Request(std::string(kMostBytes, 'x')))), "MESSAGE_TOO_LARGE");
  EXPECT_TRUE(Echoed(large).ok());
  budget_.Reserve(MemoryUse::kAnalyses, budget_.limit());
  EXPECT_EQ(Reason(Echoed(large)), "MEMORY_EXHAUSTED");
  EXPECT_EQ(ran_here_.begun() + ran_there_.begun(), 1);
}

TEST_F(RoutingTest, ACallWithoutAMessageIsInvalid) {
  ClientCall call(Serve(Without::kFail).Connect(), "/call");
  call.WritesDone();
  EXPECT_EQ(Outcome(call.Finish()), "INVALID_ARGUMENT MALFORMED_MESSAGE request");
}

TEST_F(RoutingTest, ACallThatIsCancelledWhileItsModelIsLookedUpIsCancelledWhereItRuns) {
  member_.WriteHere();
  here_ = Make<UntilCancel>(ran_here_);
  absl::Notification cancelled;
  workers_.Schedule(WorkSize::kManagement, [&] { cancelled.WaitForNotification(); });
  {
    // A call before it, whose lookup waits, too.
    ClientCall call(Serve(Without::kFail).Connect(), "/call");
    EXPECT_TRUE(call.Write(Request(kModel)));
    WaitUntil([&] { return workers_.HasBacklog(); });
    call.Cancel();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  cancelled.Notify();
  EXPECT_TRUE(ran_here_.AwaitDone(1));
  EXPECT_EQ(ran_here_.cancelled(), 1);
}

TEST_F(RoutingTest, ACallThatIsCancelledWhileItIsHandedOverIsCancelledOnce) {
  member_.WriteHere();
  here_ = [this](Call& call) {
    Make<UntilCancel>(ran_here_)(call);
    // The other thread has handled its end, or is about to.
    WaitUntil([&] { return call.cancellation().reason() != StopReason::kNone; });
  };
  ClientCall call(Serve(Without::kFail).Connect(), "/call");
  EXPECT_TRUE(call.Write(Request(kModel)));
  EXPECT_TRUE(ran_here_.AwaitBegun(1));
  call.Cancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(ran_here_.AwaitDone(1));
  // Has handled every callback.
  server_->Stop();
  EXPECT_EQ(ran_here_.cancelled(), 1);
}

// As in a fleet of which two servers have one address.
TEST_F(RoutingTest, ACallIsNotPassedOnToThisServersOwnAddress) {
  member_.WriteAt("this:1");
  EXPECT_EQ(Reason(Echoed(Request(kModel))), "NOT_THE_WRITER");
  EXPECT_EQ(ran_here_.begun() + ran_there_.begun(), 0);
}

}  // namespace
}  // namespace perceptrond::relay_test
