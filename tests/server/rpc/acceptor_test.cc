// Calls as a reactor hears of them: everything once, in order, whatever the client does and however
// many threads poll. The router that names their methods, and when a polling thread spins.
#include "server/rpc/acceptor.h"

#include <chrono>
#include <functional>
#include <ostream>
#include <thread>

#include "server/rpc/unary.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

class AcceptorTest : public ::testing::Test {
 protected:
  CallCounts counts_;
};

TEST_F(AcceptorTest, CallsThatComeOneAtATimeAreAnsweredByOneThatSpinsAndStops) {
  const Call::Method method = Make<Echo>(counts_);
  for (const int threads : {1, 3}) {
    // Gone with the last call: what polls must not ask it then.
    auto asked = std::make_unique<std::atomic<int>>(0);
    RpcServer server(All(method), threads, {},
                     {std::chrono::milliseconds(1), [&asked] { return ++*asked > 0; }});
    const auto channel = server.Connect();
    for (int i = 0; i < 300; ++i) {
      std::string answer;
      ASSERT_TRUE(AskBytes(channel, "/a.B/C", absl::StrCat(i), answer).ok());
      ASSERT_EQ(answer, absl::StrCat(i));
    }
    EXPECT_GT(*asked, 0);
    server.Stop();
    asked.reset();
  }
}

TEST_F(AcceptorTest, ConcurrentStreamsHaveEachMessageAnsweredOnceAndInOrder) {
  constexpr int kClients = 12;
  constexpr int kCalls = 4;
  constexpr int kMessages = 25;
  const Call::Method method = Make<Echo>(counts_);
  RpcServer server(All(method), 3);
  const auto channel = server.Connect();
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kCalls; ++i) {
        ClientCall call(channel, "/a.B/C");
        // Some are ahead of the answers, which then wait for nobody.
        const int ahead = client % 3 * 4;
        std::string answer;
        for (int sent = 0; sent < kMessages + ahead; ++sent) {
          if (sent < kMessages) {
            ASSERT_TRUE(call.Write(absl::StrCat(client, " ", i, " ", sent)));
          }
          if (sent < ahead) continue;
          ASSERT_TRUE(call.Read(answer));
          EXPECT_EQ(answer, absl::StrCat(client, " ", i, " ", sent - ahead));
        }
        ASSERT_TRUE(call.WritesDone());
        EXPECT_FALSE(call.Read(answer));
        EXPECT_TRUE(call.Finish().ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(counts_.AwaitDone(kClients * kCalls));
  EXPECT_EQ(counts_.cancelled(), 0);
}

// Answers what it has read when it is flushed.
class EchoesLater final : public RecordingReactor {
 public:
  EchoesLater(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnReadDone(bool ok) override {
    RecordingReactor::OnReadDone(ok);
    EXPECT_TRUE(ok);
    EXPECT_TRUE(call_.FlushLater());
    EXPECT_FALSE(std::exchange(has_read_, true));
  }
  void OnFlush() override {
    EXPECT_TRUE(has_read_);
    std::thread([&] { EXPECT_FALSE(call_.FlushLater()) << "not a polling thread"; }).join();
    call_.FinishWith(bytes_);
  }
  void Start() { call_.StartRead(&bytes_); }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
  bool has_read_ = false;
};

TEST_F(AcceptorTest, WhatIsHeldBackIsFlushedOnceNoOtherEventIsThere) {
  const Call::Method method = Make<EchoesLater>(counts_);
  RpcServer server(All(method));
  std::string answer;
  EXPECT_TRUE(AskBytes(server.Connect(), "/a.B/C", "later", answer).ok());
  EXPECT_EQ(answer, "later");
  EXPECT_TRUE(counts_.AwaitDone(1));
}

// Finished before its alarm is called off: whoever asked hears at once, the reactor to the end.
class FinishesFirst final : public RecordingReactor {
 public:
  FinishesFirst(Call& call, CallCounts& counts, absl::Notification& rung)
      : RecordingReactor(counts), call_(call), rung_(rung) {}
  void OnAlarm(bool ok) override {
    RecordingReactor::OnAlarm(ok);
    EXPECT_FALSE(ok);
    rung_.Notify();
  }
  void Start() {
    call_.StartAlarm(absl::Now() + absl::Hours(1));
    call_.FinishWith(ToBytes("early"));
  }

 private:
  Call& call_;
  absl::Notification& rung_;
};

TEST_F(AcceptorTest, AFinishedCallIsThereUntilItsAlarmIsOver) {
  absl::Notification rung;
  Call* waiting = nullptr;
  const Call::Method method = [&](Call& call) {
    const auto reactor = std::make_shared<FinishesFirst>(call, counts_, rung);
    waiting = &call;
    call.Bind(reactor);
    reactor->Start();
  };
  RpcServer server(All(method));
  std::string answer;
  EXPECT_TRUE(AskBytes(server.Connect(), "/a.B/C", "", answer).ok());
  EXPECT_EQ(answer, "early");
  EXPECT_EQ(counts_.done(), 0);
  EXPECT_FALSE(rung.HasBeenNotified());
  waiting->CancelAlarm();
  rung.WaitForNotification();
  EXPECT_TRUE(counts_.AwaitDone(1));
}

TEST_F(AcceptorTest, FinishWaitsForACallThatIsFinishedLate) {
  Call* late = nullptr;
  const Call::Method method = [&](Call& call) {
    late = &call;
    call.Bind(std::make_shared<RecordingReactor>(counts_));
  };
  RpcServer server(All(method), 3);
  ClientCall call(server.Connect(), "/a.B/C");
  ASSERT_TRUE(counts_.AwaitBegun(1));
  absl::Notification over;
  std::thread stops([&] {
    server.Stop();
    EXPECT_EQ(counts_.done(), 1);
    over.Notify();
  });
  // The server is being shut down: everybody is cancelled.
  ASSERT_TRUE(counts_.AwaitCancelled(1));
  EXPECT_EQ(counts_.done(), 0);
  EXPECT_FALSE(over.HasBeenNotified());
  late->Finish(grpc::Status::CANCELLED);
  over.WaitForNotification();
  stops.join();
}

// A few kilobytes may become gigabytes.
TEST_F(AcceptorTest, ACompressedMessageIsRefusedAndNotDecompressed) {
  Drain drain;
  const Call::Method method = EchoRequest(drain);
  RpcServer server(All(method));
  for (const auto& [algorithm, name] :
       {std::pair{GRPC_COMPRESS_GZIP, "gzip"}, {GRPC_COMPRESS_DEFLATE, "deflate"}}) {
    grpc::ChannelArguments arguments;
    arguments.SetCompressionAlgorithm(algorithm);
    std::string answer;
    const grpc::Status status =
        AskBytes(server.Connect(arguments), "/a.B/C", std::string(3 << 20, 'x'), answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_NE(status.error_message().find(name), std::string::npos) << status.error_message();
    EXPECT_EQ(answer, "");
  }
  std::string answer;
  EXPECT_TRUE(AskBytes(server.Connect(), "/a.B/C", "plain", answer).ok());
  EXPECT_EQ(answer, "plain");
}

TEST_F(AcceptorTest, TheDrainWaitsForACallFromItsRequestUntilItIsOver) {
  Drain drain;
  absl::Notification asked;
  Call* under_way = nullptr;
  const Call::Method method = OnRequest(drain, [&](Call& call, grpc::ByteBuffer& /*bytes*/) {
    under_way = &call;
    asked.Notify();
  });
  RpcServer server(All(method));
  ClientCall call(server.Connect(), "/a.B/C");
  ASSERT_TRUE(call.Started());
  EXPECT_TRUE(drain.AwaitAllRemoved(absl::ZeroDuration()));
  ASSERT_TRUE(call.Write("request"));
  asked.WaitForNotification();
  EXPECT_FALSE(drain.AwaitAllRemoved(absl::ZeroDuration()));
  under_way->FinishWith(ToBytes("answer"));
  std::string answer;
  EXPECT_TRUE(call.Read(answer));
  EXPECT_EQ(answer, "answer");
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(drain.AwaitAllRemoved(kLong));
}

// Hears everything, and lets it pass: as the server's own, which counts the calls.
class Pass final : public grpc::experimental::ServerInterceptorFactoryInterface {
  class Interceptor final : public grpc::experimental::Interceptor {
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      methods->Proceed();
    }
  };
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new Interceptor;
  }
};

// An interceptor has gRPC tell of things in another order, and more threads do anyway.
struct Polling {
  const char* name;
  int threads;
  bool intercepted;
};
void PrintTo(const Polling& polling, std::ostream* out) { *out << polling.name; }

class CancelledSoonTest : public ::testing::TestWithParam<Polling> {
 protected:
  using Client = std::function<void(int port, const std::shared_ptr<grpc::Channel>&)>;

  // Four clients at once, each with a connection of its own; then the server stops. Every call that
  // began is over then.
  void Run(const Call::Method& method, const Client& client) {
    RpcServer::Interceptors interceptors;
    if (GetParam().intercepted) interceptors.push_back(std::make_unique<Pass>());
    RpcServer server(All(method), GetParam().threads, std::move(interceptors));
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i)
      clients.emplace_back([&] { client(server.port(), server.Connect()); });
    for (std::thread& one : clients) one.join();
    server.Stop();
    EXPECT_EQ(counts_.done(), counts_.begun());
  }

  CallCounts counts_;
};
INSTANTIATE_TEST_SUITE_P(Pollings, CancelledSoonTest,
                         ::testing::Values(Polling{"OneThread", 1, false},
                                           Polling{"ThreeThreadsIntercepted", 3, true}),
                         [](const ::testing::TestParamInfo<Polling>& polling) {
                           return polling.param.name;
                         });

TEST_P(CancelledSoonTest, CallsThatAreCancelledOrResetAtOnceAreAllOverInTheEnd) {
  // Some of them before they are accepted.
  Run(Make<UntilCancel>(counts_), [](int port, const std::shared_ptr<grpc::Channel>& channel) {
    for (int i = 0; i < 100; ++i) {
      ClientCall call(channel, "/a.B/C");
      call.Cancel();
      EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
      StartAndResetCall(port, "/a.B/C");
    }
  });
  EXPECT_GT(counts_.begun(), 0);
  EXPECT_EQ(counts_.cancelled(), counts_.begun());
}

TEST_P(CancelledSoonTest, StreamsThatAreCancelledAtAnyTimeAreAllOverInTheEnd) {
  Run(Make<Echo>(counts_), [](int /*port*/, const std::shared_ptr<grpc::Channel>& channel) {
    for (int i = 0; i < 100; ++i) {
      ClientCall call(channel, "/a.B/C");
      std::string answer;
      for (int message = 0; message < i % 4; ++message) {
        ASSERT_TRUE(call.Write("m"));
        if (message % 2 == 0) {
          ASSERT_TRUE(call.Read(answer));
        }
      }
      // Answered and cancelled at the same time: each call ends once, either way.
      if (i % 5 == 4) {
        call.WritesDone();
      }
      call.Cancel();
      call.Finish();
    }
  });
}

constexpr char kService[] = "grpc.health.v1.Health";

Call::Method Says(const std::string& word) {
  return [word](Call& call) {
    call.Bind(std::make_shared<Reactor>());
    call.FinishWith(ToBytes(word));
  };
}

TEST(Router, AnUnknownMethodIsUnimplementedWithAReasonAndItsName) {
  Router router;
  router.AddService(kService, {{"Watch", Says("watch")}, {"Check", Says("check")}});
  RpcServer server(
      [&](const std::string& path) -> const Call::Method& { return router.Find(path); });
  const auto channel = server.Connect();
  for (const char* path : {"/grpc.health.v1.Health/Ask", "/grpc.health.v1.health/Check",
                           "/grpc.health.v1.Health", "/no.Service/Check", "/"}) {
    ClientCall call(channel, path);
    std::string answer;
    EXPECT_FALSE(call.Read(answer));
    const grpc::Status status = call.Finish();
    EXPECT_NE(status.error_message().find(path), std::string::npos) << status.error_message();
    EXPECT_EQ(Outcome(status), "UNIMPLEMENTED UNKNOWN_METHOD") << path;
  }
}

TEST(RouterDeathTest, AServiceIsAddedWholeOrNotAtAll) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Router router;
  for (const std::vector<const char*>& names :
       {std::vector{"Check"}, {"Check", "Watch", "Ask"}, {"Check", "Ask"}, {"Check", "Check"}}) {
    std::vector<Router::NamedMethod> methods;
    for (const char* name : names) methods.push_back({name, Says(name)});
    EXPECT_DEATH(router.AddService(kService, methods), kService);
  }
  EXPECT_DEATH(router.AddService("no.such.Service", {}), "no.such.Service");
}

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kMost = microseconds(50);

class SpinPolicyTest : public ::testing::Test {
 protected:
  // A request that comes after so long a wait, and its further events at once.
  void Request(nanoseconds waited, int events = 3, bool quiet = true) {
    for (int i = 0; i < events; ++i) {
      policy_.OnEvent(i == 0 ? waited : nanoseconds(200));
      policy_.OnHandled([&] { return quiet; });
    }
  }
  // As many as it takes, and more.
  void ComeOneAtATime(int requests = 100) {
    for (int i = 0; i < requests; ++i) Request(microseconds(30));
  }
  bool Spins() const { return policy_.duration() > nanoseconds::zero(); }

  SpinPolicy policy_{kMost};
};

TEST_F(SpinPolicyTest, SpinsOnceSomeRequestsCameOneAtATime) {
  EXPECT_FALSE(Spins());
  ComeOneAtATime(3);
  EXPECT_FALSE(Spins());
  ComeOneAtATime(20);
  EXPECT_EQ(policy_.duration(), kMost);
}

TEST_F(SpinPolicyTest, EndsAfterAPauseAndWhenSomebodyWaitsOrWorks) {
  ComeOneAtATime();
  Request(std::chrono::milliseconds(1));
  EXPECT_FALSE(Spins());
  ComeOneAtATime();
  Request(microseconds(30), 3, /*quiet=*/false);
  EXPECT_FALSE(Spins());
}

TEST_F(SpinPolicyTest, EndsWhenRequestsComeManyAtOnce) {
  ComeOneAtATime();
  Request(microseconds(30), 40);
  EXPECT_FALSE(Spins());
  Request(microseconds(30), 40);
  EXPECT_FALSE(Spins());
}

// A client that takes a little longer than one looks.
TEST_F(SpinPolicyTest, AtMostOneRequestInEightCostsAFruitlessSpin) {
  int in_vain = 0;
  constexpr int kRequests = 900;
  for (int i = 0; i < kRequests; ++i) {
    if (Spins()) {
      policy_.OnTimeout();
      ++in_vain;
    }
    Request(microseconds(120));
  }
  EXPECT_GT(in_vain, 0);
  EXPECT_LE(in_vain, kRequests / 8);
}

TEST_F(SpinPolicyTest, OneFruitlessSpinAmongManyLoneRequestsDoesNotEndSpinning) {
  ComeOneAtATime();
  policy_.OnTimeout();
  EXPECT_TRUE(Spins());
}

}  // namespace
}  // namespace perceptrond
