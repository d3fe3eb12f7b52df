// Which thread answers a request, and which requests are rejected before they are handled.
#include "server/rpc/unary.h"

#include <map>
#include <thread>

#include "core/journal/memory_journal.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/backend.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/wait_until.h"

namespace perceptrond::unary_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

constexpr size_t kMostBytes = 64 << 10;

// How often a request was answered by the function below.
std::atomic<int> bodies = 0;

// Returns the thread that answers; fails on request.
absl::Status WhichThread(Store& /*store*/, const v1::GetModelRequest& request,
                         v1::Model& response) {
  ++bodies;
  if (request.name() == "fail") return absl::FailedPreconditionError("as requested");
  response.set_description(absl::StrCat(gettid()));
  return absl::OkStatus();
}
absl::Status WhetherDraining(Store& /*store*/, const Drain& drain,
                             const v1::GetModelRequest& /*request*/, v1::Model& response) {
  response.set_description(drain.draining() ? "draining" : "serving");
  return absl::OkStatus();
}
Placement PlacementOfSlow(Store& /*store*/, const v1::GetModelRequest& request) {
  return {WorkSize::kSmall, request.name().find("slow") == std::string::npos};
}
Placement PlacementOfLarge(Store& /*store*/, const v1::GetModelRequest& /*request*/) {
  return {WorkSize::kLarge};
}
constexpr auto kManaging = IsManagement<v1::GetModelRequest>;

class UnaryTest : public ::testing::Test {
 protected:
  UnaryTest()
      : methods_(Methods(Backend{store_, drain_, workers_, memory_, kMostBytes})),
        server_([this](const std::string& path) -> const Call::Method& {
          poller_ = gettid();
          return methods_.at(path);
        }),
        channel_(server_.Connect()) {}

  static std::map<std::string, Call::Method> Methods(const Backend& backend) {
    const UnaryMethods unary(backend);
    return {{"/slow", unary(WhichThread, kManaging)},
            {"/quick", unary(WhichThread, PlacementOfSlow)},
            {"/large", unary(WhichThread, PlacementOfLarge)},
            {"/drain", unary(WhetherDraining, kManaging)},
            {"/quickdrain", unary(WhetherDraining, PlacementOfSlow)}};
  }
  v1::GetModelRequest Request(const std::string& name) {
    v1::GetModelRequest request;
    request.set_name(name);
    return request;
  }
  // The answering thread; 0: none did.
  pid_t Thread(const std::string& path, const std::string& name) {
    v1::Model response;
    const grpc::Status status = Ask(channel_, path, Request(name), response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() ? std::stoi(response.description()) : 0;
  }
  // Keeps a thread busy until held_->go.
  void Hold(Workers& workers, WorkSize size) {
    held_.emplace(workers, size).begun.WaitForNotification();
  }
  grpc::Status Try(const std::string& path, const std::string& name) {
    v1::Model response;
    return Ask(channel_, path, Request(name), response);
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  MemoryBudget budget_{1 << 30, 1 << 28};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  std::optional<HeldWork> held_;
  Workers workers_{2};
  std::atomic<pid_t> poller_ = 0;
  const std::map<std::string, Call::Method> methods_;
  RpcServer server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(UnaryTest, ThePollingThreadAnswersWhatIsSmallAndMayRunInlineAndWorkersTheRest) {
  EXPECT_EQ(Thread("/quick", "small"), poller_);
  EXPECT_NE(Thread("/quick", "slow"), poller_);
  EXPECT_NE(Thread("/slow", "small"), poller_);
  const size_t own =
      Request(std::string(kMaxInlineBytes - 4, 'x')).ByteSizeLong() - (kMaxInlineBytes - 4);
  EXPECT_EQ(Thread("/quick", std::string(kMaxInlineBytes - own, 'x')), poller_);
  EXPECT_NE(Thread("/quick", std::string(kMaxInlineBytes - own + 1, 'x')), poller_);
}

TEST_F(UnaryTest, TheBodysErrorIsTheCallsAndBytesThatAreNoRequestAreInvalid) {
  for (const char* path : {"/slow", "/quick"}) {
    const grpc::Status status = Try(path, "fail");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << path;
    EXPECT_EQ(status.error_message(), "as requested");
    std::string answer;
    EXPECT_EQ(AskBytes(channel_, path, "\x0a\x05x", answer).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT)
        << path;
  }
}

TEST_F(UnaryTest, AServerThatDrainsIsUnavailableButForABodyThatAsksForTheDrainItself) {
  for (const char* expected : {"serving", "draining"}) {
    for (const char* path : {"/drain", "/quickdrain"}) {
      v1::Model response;
      EXPECT_TRUE(Ask(channel_, path, Request("small"), response).ok());
      EXPECT_EQ(response.description(), expected) << path;
    }
    drain_.Begin();
  }
  for (const char* path : {"/slow", "/quick"})
    EXPECT_EQ(Try(path, "small").error_code(), grpc::StatusCode::UNAVAILABLE) << path;
}

TEST_F(UnaryTest, ACallThatIsCancelledInTheQueueIsDroppedWithoutWork) {
  Hold(workers_, WorkSize::kLarge);
  const int before = bodies;
  {
    ClientCall late(channel_, "/large");
    ASSERT_TRUE(late.Write(Request("late").SerializeAsString()));
    ASSERT_TRUE(late.WritesDone());
    while (!workers_.HasBacklog()) std::this_thread::yield();
    late.Cancel();
    EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // Its cancellation has reached the server before this on the same connection.
  EXPECT_EQ(Thread("/quick", "small"), poller_);
  held_->go.Notify();
  // It was queued before this one.
  EXPECT_NE(Thread("/large", "next"), 0);
  EXPECT_EQ(bodies, before + 2);
}

TEST_F(UnaryTest, ACallBeyondTheQueueIsRefusedAndSaysWhenToTryAgain) {
  Drain drain;
  Workers busy(1, {.max_queued = 1});
  const Backend backend{store_, drain, busy, memory_, kMostBytes};
  const std::map<std::string, Call::Method> methods = Methods(backend);
  {
    RpcServer server(
        [&](const std::string& path) -> const Call::Method& { return methods.at(path); });
    const auto channel = server.Connect();
    Hold(busy, WorkSize::kSmall);
    Workers::Work queued = [] {};
    ASSERT_TRUE(busy.TrySchedule(WorkSize::kSmall, queued));
    v1::Model response;
    const grpc::Status status = Ask(channel, "/quick", Request("slow"), response);
    EXPECT_EQ(Outcome(status), "RESOURCE_EXHAUSTED SERVER_BUSY");
    EXPECT_TRUE(RetryDelay(status).has_value());
    held_->go.Notify();
  }
}

TEST_F(UnaryTest, ARequestThatWouldTakeMoreThanTheMemoryForItOnceParsedIsRefused) {
  MemoryBudget budget(1 << 20, 1 << 18);
  InFlightMemory memory(budget, kLong);
  const std::map<std::string, Call::Method> methods =
      Methods(Backend{store_, drain_, workers_, memory, kMostBytes});
  RpcServer server(
      [&](const std::string& path) -> const Call::Method& { return methods.at(path); });
  const auto channel = server.Connect();
  const int before = bodies;
  std::string answer;
  EXPECT_EQ(Reason(AskBytes(channel, "/quick", UnknownFields(kMostBytes), answer)),
            "MESSAGE_TOO_LARGE");
  EXPECT_EQ(bodies, before);
  v1::Model response;
  EXPECT_TRUE(Ask(channel, "/quick", Request(std::string(kMostBytes - 10, 'x')), response).ok());
}

TEST_F(UnaryTest, ARequestThatWaitsCountsAsWhatItHasBecome) {
  Hold(workers_, WorkSize::kLarge);
  {
    ClientCall call(channel_, "/large");
    ASSERT_TRUE(call.Write(UnknownFields(kMaxInlineBytes)));
    ASSERT_TRUE(call.WritesDone());
    WaitUntil([&] { return budget_.reserved(MemoryUse::kRequests) >= 16 * kMaxInlineBytes; });
    held_->go.Notify();
    std::string answer;
    EXPECT_TRUE(call.Read(answer));
    EXPECT_TRUE(call.Finish().ok());
  }
  WaitUntil([&] { return budget_.reserved(MemoryUse::kRequests) == 0; });
  budget_.Reserve(MemoryUse::kAnalyses, budget_.limit());
  std::string answer;
  EXPECT_TRUE(AskBytes(channel_, "/large", Request("small").SerializeAsString(), answer).ok());
  EXPECT_EQ(Reason(AskBytes(channel_, "/large", UnknownFields(kMaxInlineBytes), answer)),
            "MEMORY_EXHAUSTED");
}

}  // namespace
}  // namespace perceptrond::unary_test
