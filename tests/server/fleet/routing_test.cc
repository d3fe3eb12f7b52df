// Where a call runs: here, on the server that writes its model, or nowhere.
#include "server/fleet/routing.h"

#include "perceptron/v1/model_service.pb.h"
#include "tests/server/fleet/fleet_nodes.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::routing_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

constexpr char kModel[] = "models/m";
constexpr size_t kMostBytes = 64 << 10;

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
}  // namespace perceptrond::routing_test
