// Calls as a reactor hears of them: everything once, in order, whatever the client does and however
// many threads poll.
#include "server/rpc/acceptor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/rpc/unary.h"
#include "tests/server/rpc/reactors.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

// Answers the one request with itself.
class EchoOne final : public RecordingReactor {
 public:
  EchoOne(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnReadDone(bool ok) override {
    RecordingReactor::OnReadDone(ok);
    ok ? call_.FinishWith(bytes_) : call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() { call_.StartRead(&bytes_); }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
};

class AcceptorTest : public ::testing::Test {
 protected:
  CallCounts counts_;
};

TEST_F(AcceptorTest, CallsThatComeOneAtATimeAreAnsweredByOneThatSpinsAndStops) {
  const Call::Method method = Make<EchoOne>(counts_);
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
  const Call::Method method = Make<EchoOne>(counts_);
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

}  // namespace
}  // namespace perceptrond
