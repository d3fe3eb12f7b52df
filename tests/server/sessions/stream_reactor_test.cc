// A stream's carrier reads, gives to its session and writes: with a session that the test steers. And streams of reports of one model,
// which many clients may watch.
#include "server/sessions/stream_reactor.h"

#include <deque>
#include <functional>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/backend.h"
#include "server/sessions/watch_reactor.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/models.h"
#include "tests/support/wait_until.h"

namespace perceptrond::stream_reactor_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

v1::GetModelRequest Message(int number, size_t bytes = 0) {
  v1::GetModelRequest message;
  message.set_name(absl::StrCat(number, ":", std::string(bytes, 'x')));
  return message;
}

// Controls the sessions of a test, and records their messages.
struct Script {
  Mutex mutex;
  // The number of messages that may be accepted; a thread with another message waits.
  int may_accept ABSL_GUARDED_BY(mutex) = 1 << 30;
  // Answers may be taken.
  bool may_take ABSL_GUARDED_BY(mutex) = true;
  // The message that is refused and ends the stream. Set before it is sent.
  std::string refused;
  // The number of unanswered messages at which the session is full.
  std::atomic<size_t> most = 1000;
  bool can_run_inline = true;
  WorkSize size = WorkSize::kSmall;
  // How often memory for the next messages was released.
  std::atomic<int> dropped = 0;
  std::vector<std::string> accepted ABSL_GUARDED_BY(mutex);
  std::function<void()> ready;

  // Accepts so many messages in all from now on, and has answers taken or not.
  void Allow(int accept, bool take) {
    MutexLock lock(&mutex);
    may_accept = accept;
    may_take = take;
  }
  void Allow(int accept) {
    MutexLock lock(&mutex);
    may_accept = accept;
  }
  // Waits until `count` messages are accepted or being accepted.
  void AwaitAccepted(size_t count) {
    MutexLock lock(&mutex);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return accepted.size() >= count;
    };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&enough), kLong));
  }
};

// Answers each message with its name.
template <bool at_once>
class ScriptedSession {
 public:
  using Request = v1::GetModelRequest;
  using Response = v1::Model;
  static constexpr bool kAnswersSynchronously = at_once;
  static constexpr Part kAwaited = Part::kCommit;

  explicit ScriptedSession(Script& script) : script_(script) {}

  void OnReady(std::function<void()> ready) { script_.ready = std::move(ready); }
  bool CanRunInline() const { return script_.can_run_inline; }
  WorkSize SizeOf(const Request& /*request*/) const { return script_.size; }
  void DropSpareMemory() { ++script_.dropped; }
  void EndInput() {}
  absl::Status Accept(const Request& request, size_t /*bytes*/, bool /*more*/) {
    MutexLock lock(&script_.mutex);
    script_.accepted.push_back(request.name().substr(0, request.name().find(':')));
    const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(script_.mutex) {
      return static_cast<int>(script_.accepted.size()) <= script_.may_accept;
    };
    script_.mutex.Await(absl::Condition(&may));
    if (script_.accepted.back() == script_.refused) return absl::DataLossError("refused");
    answers_.push_back(script_.accepted.back());
    return absl::OkStatus();
  }
  SessionState Poll(Response* response) {
    MutexLock lock(&script_.mutex);
    const bool has_response = response != nullptr && !answers_.empty() && script_.may_take;
    if (has_response) {
      response->set_name(answers_.front());
      answers_.pop_front();
    }
    SessionState state(StreamLimits{script_.most, SIZE_MAX}, answers_.size(), 0);
    state.has_response = has_response;
    return state;
  }

 private:
  Script& script_;
  std::deque<std::string> answers_ ABSL_GUARDED_BY(script_.mutex);
};

class StreamReactorTest : public ::testing::TestWithParam<bool> {
 protected:
  StreamReactorTest()
      : method_([this](Call& call) {
          const Backend backend{store_, drain_, workers_, memory_, 1 << 20};
          if (GetParam()) {
            StreamReactor<ScriptedSession<true>>::Start(
                call, backend, std::make_shared<ScriptedSession<true>>(script_));
          } else {
            StreamReactor<ScriptedSession<false>>::Start(
                call, backend, std::make_shared<ScriptedSession<false>>(script_));
          }
        }),
        server_([this](const std::string&) -> const Call::Method& { return method_; }, 2),
        stream_(server_.Connect(), "/stream") {}

  void Send(int first, int count, size_t bytes = 0) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(stream_.Write(Message(first + i, bytes).SerializeAsString()));
  }
  void ExpectAnswers(int first, int count) {
    for (int i = 0; i < count; ++i) {
      std::string bytes;
      v1::Model answer;
      ASSERT_TRUE(stream_.Read(bytes)) << first + i;
      ASSERT_TRUE(answer.ParseFromString(bytes));
      ASSERT_EQ(answer.name(), absl::StrCat(first + i));
    }
  }
  size_t accepted() {
    MutexLock lock(&script_.mutex);
    return script_.accepted.size();
  }

  Script script_;
  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  MemoryBudget budget_{1 << 30, 1 << 28};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  Workers workers_{3};
  const Call::Method method_;
  RpcServer server_;
  ClientCall stream_;
};

TEST_P(StreamReactorTest, OneMessageAtATimeIsAnsweredAtATimeSmallOrLarge) {
  for (int i = 0; i < 100; ++i) {
    Send(i, 1, i % 3 == 0 ? kMaxInlineBytes : 0);
    ExpectAnswers(i, 1);
  }
}

TEST_P(StreamReactorTest, ABurstIsAnsweredInItsOrder) {
  for (const size_t bytes : {size_t{0}, kMaxInlineBytes}) {
    {
      MutexLock lock(&script_.mutex);
      script_.accepted.clear();
    }
    Send(0, 200, bytes);
    ExpectAnswers(0, 200);
  }
}

TEST_P(StreamReactorTest, WhatWasReadAheadOfAHalfCloseIsAnsweredBeforeTheEnd) {
  script_.Allow(0);
  Send(0, 20, kMaxInlineBytes);
  script_.AwaitAccepted(1);
  ASSERT_TRUE(stream_.WritesDone());
  script_.Allow(1000);
  ExpectAnswers(0, 20);
  EXPECT_TRUE(stream_.Finish().ok());
}

TEST_P(StreamReactorTest, WhatWasReadAheadIsNotAcceptedWhileAnswersHaveNoRoom) {
  script_.most = 3;
  script_.Allow(0, /*take=*/false);
  // Read ahead as far as there is room; the others wait with gRPC, whose window holds them.
  Send(0, 6, kMaxInlineBytes);
  script_.AwaitAccepted(1);
  script_.Allow(1000);
  script_.AwaitAccepted(3);
  // A worker that would go on does so before this has gone through the same workers.
  for (int i = 0; i < 2; ++i) {
    absl::Notification done;
    workers_.Schedule(WorkSize::kSmall, [&] { done.Notify(); });
    done.WaitForNotification();
  }
  EXPECT_EQ(accepted(), 3U);
  script_.Allow(1000, /*take=*/true);
  script_.ready();
  ExpectAnswers(0, 6);
}

TEST_P(StreamReactorTest, AMessageThatEndsTheStreamIsTheLastThatIsAccepted) {
  script_.Allow(0);
  script_.refused = "5";
  Send(0, 20, kMaxInlineBytes);
  script_.AwaitAccepted(1);
  script_.Allow(1000);
  ExpectAnswers(0, 5);
  std::string bytes;
  EXPECT_FALSE(stream_.Read(bytes));
  EXPECT_EQ(stream_.Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(accepted(), 6U);
}

TEST_P(StreamReactorTest, ADrainEndsItOnceTheMessageUnderWayIsAnswered) {
  script_.Allow(1);
  Send(0, 1, kMaxInlineBytes);
  ExpectAnswers(0, 1);
  Send(1, 10, kMaxInlineBytes);
  script_.AwaitAccepted(2);
  drain_.Begin();
  script_.Allow(1000);
  ExpectAnswers(1, 1);
  std::string bytes;
  EXPECT_FALSE(stream_.Read(bytes));
  EXPECT_EQ(stream_.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(accepted(), 2U);
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_P(StreamReactorTest, AStreamThatIsCancelledWhileAMessageIsLearnedIsOverAfterIt) {
  script_.Allow(0);
  Send(0, 10, kMaxInlineBytes);
  script_.AwaitAccepted(1);
  stream_.Cancel();
  EXPECT_EQ(stream_.Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(drain_.AwaitAllRemoved(absl::ZeroDuration()));
  script_.Allow(1000);
  EXPECT_TRUE(drain_.AwaitAllRemoved(kLong));
}

TEST_P(StreamReactorTest, BytesThatAreNoMessageEndItWithWhatIsWrong) {
  Send(0, 1);
  ASSERT_TRUE(stream_.Write("\x0a\x05x"));
  ExpectAnswers(0, 1);
  EXPECT_EQ(stream_.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_P(StreamReactorTest, AMessageThatWouldTakeMoreThanTheMemoryForItOnceParsedEndsTheStream) {
  MemoryBudget budget(1 << 24, 1 << 22);
  InFlightMemory memory(budget, kLong);
  const Backend backend{store_, drain_, workers_, memory, 1 << 20};
  const Call::Method method = [&](Call& call) {
    StreamReactor<ScriptedSession<false>>::Start(call, backend,
                                                 std::make_shared<ScriptedSession<false>>(script_));
  };
  RpcServer server([&](const std::string&) -> const Call::Method& { return method; }, 2);
  ClientCall stream(server.Connect(), "/stream");
  std::string answer;
  ASSERT_TRUE(stream.Write(Message(0, 900'000).SerializeAsString()));
  EXPECT_TRUE(stream.Read(answer));
  ASSERT_TRUE(stream.Write(Message(1).SerializeAsString() + UnknownFields(900'000)));
  EXPECT_FALSE(stream.Read(answer));
  EXPECT_EQ(Reason(stream.Finish()), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(accepted(), 1U);
}

TEST_P(StreamReactorTest, AMessageThatHasBecomeLargeLeavesNoMemoryForTheNext) {
  Send(0, 1, 100'000);
  ExpectAnswers(0, 1);
  ASSERT_TRUE(stream_.Write(Message(1).SerializeAsString() + UnknownFields(100'000)));
  ExpectAnswers(1, 1);
  WaitUntil([&] { return script_.dropped == 1; });
}

TEST_P(StreamReactorTest, ALargeMessageWaitsForItsTurnWhileThereIsMemoryForIt) {
  script_.size = WorkSize::kLarge;
  HeldWork held(workers_, WorkSize::kLarge);
  held.begun.WaitForNotification();
  const size_t bytes = CallMemory::kFreeBytes - 100;
  // There is none: it is handled at once.
  budget_.Reserve(MemoryUse::kAnalyses, budget_.limit());
  ASSERT_TRUE(stream_.Write(Message(0).SerializeAsString() + UnknownFields(bytes)));
  ExpectAnswers(0, 1);
  budget_.Release(MemoryUse::kAnalyses, budget_.limit());
  ASSERT_TRUE(stream_.Write(Message(1).SerializeAsString() + UnknownFields(bytes)));
  // Counted as what it has become.
  WaitUntil([&] { return budget_.reserved(MemoryUse::kRequests) >= 16 * bytes; });
  EXPECT_EQ(accepted(), 1U);
  held.go.Notify();
  ExpectAnswers(1, 1);
}

// Has a call's second message arrive after the call is finished.
class SecondMessageLate final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit SecondMessageLate(absl::Notification& arrived) : arrived_(arrived) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new Interceptor(arrived_);
  }

 private:
  class Interceptor final : public grpc::experimental::Interceptor {
   public:
    explicit Interceptor(absl::Notification& arrived) : arrived_(arrived) {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using Point = grpc::experimental::InterceptionHookPoints;
      if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) finished_.Notify();
      if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE) && ++received_ == 2) {
        arrived_.Notify();
        finished_.WaitForNotification();
      }
      methods->Proceed();
    }

   private:
    absl::Notification& arrived_;
    absl::Notification finished_;
    std::atomic<int> received_ = 0;
  };

  absl::Notification& arrived_;
};

TEST_P(StreamReactorTest, AMessageThatArrivesAfterACancelledCallIsFinishedIsNotAccepted) {
  absl::Notification arrived;
  RpcServer::Interceptors interceptors;
  interceptors.push_back(std::make_unique<SecondMessageLate>(arrived));
  RpcServer server([this](const std::string&) -> const Call::Method& { return method_; }, 2,
                   std::move(interceptors));
  ClientCall stream(server.Connect(), "/stream");
  std::string answer;
  ASSERT_TRUE(stream.Write(Message(0).SerializeAsString()));
  ASSERT_TRUE(stream.Read(answer));
  ASSERT_TRUE(stream.Write(Message(1).SerializeAsString()));
  arrived.WaitForNotification();
  stream.Cancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  server.Stop();
  EXPECT_EQ(accepted(), 1U);
}

INSTANTIATE_TEST_SUITE_P(AnsweredAtOnceOrLater, StreamReactorTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AtOnce" : "Later"; });

// Counts how often a model's settings are read.
class CountingJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override {
    ++reads_;
    return JournalDecorator::Find(name);
  }
  int reads() const { return reads_; }

 private:
  std::atomic<int> reads_ = 0;
};

class WatchReactorTest : public ::testing::Test {
 protected:
  WatchReactorTest() {
    v1::Model settings = DenseSettings("models/m", 1);
    for (int i = 0; i < 40; ++i) {
      settings.add_label_names(absl::StrCat(i, std::string(1000, 'n')));
      v1::WeightVector& start =
          *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
      start.add_indices(0);
      start.add_values(1);
    }
    settings.mutable_learner()->mutable_classes()->set_max_classes(40);
    EXPECT_OK(store_.Create(settings, "", false).status());
  }
  // A stream on a connection of its own.
  std::unique_ptr<ClientCall> Begin(const std::string& name = "models/m") {
    v1::WatchModelRequest request;
    request.set_name(name);
    auto call = std::make_unique<ClientCall>(server_.Connect(), "/watch");
    EXPECT_TRUE(call->Write(request.SerializeAsString()) && call->WritesDone());
    return call;
  }
  // The first answer of such a stream.
  std::string Watch(const std::string& name = "models/m") {
    std::string answer;
    EXPECT_TRUE(Begin(name)->Read(answer));
    return answer;
  }

  CountingJournal* const journal_ = new CountingJournal(std::make_shared<MemoryJournal>());
  Store store_{std::unique_ptr<Journal>(journal_), Store::Options()};
  MemoryBudget budget_{1 << 24, 1 << 22};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  Workers workers_{2};
  const Call::Method method_ = [this](Call& call) {
    WatchReactor::Start(call, Backend{store_, drain_, workers_, memory_, 1 << 20});
  };
  RpcServer server_{[this](const std::string& /*path*/) -> const Call::Method& { return method_; }};
};

TEST_F(WatchReactorTest, AReportIsShortHoweverLongTheNamesOfTheLabels) {
  EXPECT_LT(Watch().size(), 1000);
}

TEST_F(WatchReactorTest, ReportsOfAModelInMemoryAreCurrentAndReadItsSettingsFromNoJournal) {
  Watch();
  const auto describe = [](v1::Model& model) {
    model.set_description("changed");
    return absl::OkStatus();
  };
  EXPECT_OK(store_.Change("models/m", {}, describe).status());
  const int reads = journal_->reads();
  for (int i = 0; i < 20; ++i) {
    v1::WatchModelResponse response;
    ASSERT_TRUE(response.ParseFromString(Watch()));
    EXPECT_EQ(response.model().description(), "changed");
  }
  EXPECT_EQ(journal_->reads(), reads);
}

TEST_F(WatchReactorTest, ADrainEndsAStreamThatWaitsForUpdates) {
  const auto call = Begin();
  std::string answer;
  ASSERT_TRUE(call->Read(answer));
  drain_.Begin();
  EXPECT_FALSE(call->Read(answer));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A model has up to 10,000 class weights.
TEST_F(WatchReactorTest, AReportThatDoesNotFitTheBudgetEndsTheStream) {
  v1::Model settings = DenseSettings("models/m2", 1);
  settings.mutable_learner()->mutable_classes()->set_max_classes(4000);
  for (int i = 0; i < 4000; ++i) settings.mutable_learner()->add_class_weights(1 + i);
  ASSERT_OK(store_.Create(settings, "", false).status());
  EXPECT_GT(Watch("models/m2").size(), 30'000);

  budget_.ChangeModels(0, budget_.limit());
  budget_.Reserve(MemoryUse::kRequests, budget_.share());
  const auto call = Begin("models/m2");
  std::string answer;
  EXPECT_FALSE(call->Read(answer));
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  budget_.Release(MemoryUse::kRequests, budget_.share());
}

}  // namespace
}  // namespace perceptrond::stream_reactor_test
