// Connections that the server accepts itself: served, counted, refused, closed; whatever becomes of
// their descriptors' numbers.
#include "server/rpc/listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/transport.h"
#include "tests/server/rpc/raw_client.h"
#include "tests/server/rpc/reactors.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/ipv6.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

// Answers each message with itself.
class Echo final : public Reactor {
 public:
  explicit Echo(Call& call) : call_(call) {}
  void Start() { call_.StartReadRequest(&bytes_); }
  void OnReadDone(bool ok) override {
    if (decided_.exchange(true)) return;
    ok ? call_.FinishWith(bytes_) : call_.Finish(grpc::Status::CANCELLED);
  }
  void OnRequestTimeout() override {
    if (!decided_.exchange(true)) call_.Finish(ToGrpc(RequestTimeout()));
  }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
  std::atomic<bool> decided_{false};
};

// A server of the transport and the acceptor, as Server has them.
class TransportServer {
 public:
  explicit TransportServer(std::string address = "127.0.0.1:0", Connections::Limits limits = {},
                           absl::Duration receive_timeout = absl::Minutes(5))
      : connections_(limits),
        acceptor_([this](const std::string&) -> const Call::Method& { return method_; },
                  &connections_) {
    TransportOptions options;
    options.addresses = {std::move(address)};
    options.max_receive_bytes = 64 << 20;
    options.receive_timeout = receive_timeout;
    // Its connections are counted as well.
    options.probe_interval = absl::ZeroDuration();
    options.on_second = [this, receive_timeout] { acceptor_.EndLateRequests(receive_timeout); };
    auto listening = Transport::Listen(std::move(options), connections_);
    EXPECT_TRUE(listening.ok()) << listening.status();
    transport_ = *std::move(listening);
    grpc::ServerBuilder builder;
    transport_->AddTo(builder, grpc::InsecureServerCredentials());
    acceptor_.AddTo(builder);
    server_ = builder.BuildAndStart();
    acceptor_.Start(1);
    transport_->Start();
  }
  ~TransportServer() {
    transport_->Stop();
    acceptor_.Stop(*server_);
  }

  std::string address() const { return transport_->addresses()[0]; }
  int port() const { return std::stoi(address().substr(address().rfind(':') + 1)); }
  Connections& connections() { return connections_; }
  void AwaitOpen(uint64_t count) {
    while (connections_.stats().open != count) std::this_thread::yield();
  }
  std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel) {
    std::string answer;
    return AskBytes(channel, "/a.B/C", "x", answer);
  }

 private:
  const Call::Method method_ = [](Call& call) {
    const auto reactor = std::make_shared<Echo>(call);
    call.Bind(reactor);
    reactor->Start();
  };
  Connections connections_;
  Acceptor acceptor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<grpc::Server> server_;
};

int ConnectRaw(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return descriptor;
}

// Sends a header block without an end until the server closes the connection.
void Flood(int port) {
  const int descriptor = ConnectRaw(port);
  const std::string start =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "") + Http2Frame(1, 0, 1, "\x83");
  send(descriptor, start.data(), start.size(), MSG_NOSIGNAL);
  std::string more;
  const std::string field = std::string(1, 0) + Http2Literal("x-a") + Http2Literal("bbbb");
  for (int i = 0; i < 1000; ++i) more += Http2Frame(9, 0, 1, field + field + field);
  for (ssize_t sent = 1; sent > 0;) sent = send(descriptor, more.data(), more.size(), MSG_NOSIGNAL);
  close(descriptor);
}

TEST(ListenerTest, CallsOnEveryKindOfAddressAreAnsweredAndCountedOnTheirConnection) {
  const TempDir dir;
  for (const std::string& address : {std::string("127.0.0.1:0"), std::string("[::1]:0"),
                                     std::string("0.0.0.0:0"), "unix:" + dir.path() + "/socket"}) {
    if (address == "[::1]:0" && !testing::HasIpv6()) continue;
    Connections::Limits limits;
    limits.streams_per_connection = 1;
    TransportServer server(address, limits);
    const std::string reached = absl::StartsWith(address, "0.0.0.0")
                                    ? absl::StrCat("127.0.0.1:", server.port())
                                    : server.address();
    const auto channel = server.Connect(reached);
    const grpc::Status status = server.Ask(channel);
    EXPECT_TRUE(status.ok()) << reached << ": " << status.error_message();
    EXPECT_EQ(server.connections().stats().accepted, 1);
    // The connection is found for the second call, which is one too many, if it has a name.
    ClientCall held(channel, "/a.B/C");
    EXPECT_TRUE(held.Started());
    while (server.connections().stats().streams == 0) std::this_thread::yield();
    const grpc::Status second = server.Ask(channel);
    if (absl::StartsWith(address, "unix:")) {
      EXPECT_TRUE(second.ok());
    } else {
      EXPECT_EQ(ReasonOf(second), "TOO_MANY_STREAMS") << reached;
    }
  }
}

TEST(ListenerTest, TheEndOfAConnectionIsNoticed) {
  TransportServer server;
  std::vector<int> open;
  for (int i = 0; i < 20; ++i) open.push_back(ConnectRaw(server.port()));
  server.AwaitOpen(20);
  for (const int one : open) close(one);
  server.AwaitOpen(0);
  {
    const auto channel = server.Connect(server.address());
    EXPECT_TRUE(server.Ask(channel).ok());
    server.AwaitOpen(1);
  }
  server.AwaitOpen(0);
}

TEST(ListenerTest, AConnectionBeyondTheLimitIsRefusedByItsFirstCallAndThenClosed) {
  TransportServer server("127.0.0.1:0", {.connections = 1});
  const int first = ConnectRaw(server.port());
  server.AwaitOpen(1);
  const auto channel = server.Connect(server.address());
  const grpc::Status refused = server.Ask(channel);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(refused), "TOO_MANY_CONNECTIONS");
  EXPECT_TRUE(
      channel->WaitForStateChange(GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + kLong)));
  EXPECT_EQ(server.connections().stats().accepted, 1);
  close(first);
  server.AwaitOpen(0);
  EXPECT_TRUE(server.Ask(server.Connect(server.address())).ok());
}

TEST(ListenerTest, ARequestThatTakesTooLongEndsWithAReason) {
  TransportServer server("127.0.0.1:0", {}, absl::Milliseconds(1));
  const auto channel = server.Connect(server.address());
  ClientCall call(channel, "/a.B/C");
  std::string answer;
  EXPECT_FALSE(call.Read(answer));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ReasonOf(status), "REQUEST_TIMEOUT");
}

// The watchdog closes connections by a descriptor of its own, whose number no other file gets; also
// those that gRPC reads on the thread that accepted them.
TEST(ListenerTest, ClosingConnectionsDoesNotTouchOtherFiles) {
  TransportServer server;
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!done) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        char byte = 'x';
        ASSERT_EQ(write(ends[0], &byte, 1), 1);
        ASSERT_EQ(read(ends[1], &byte, 1), 1);
        close(ends[0]);
        close(ends[1]);
      }
    });
  }
  others.emplace_back([&] {
    while (!done) {
      const int descriptor = ConnectRaw(server.port());
      // The server's settings: it is asked for no more connections than it handles.
      char byte = 0;
      EXPECT_GE(recv(descriptor, &byte, 1, 0), 0);
      close(descriptor);
    }
  });
  const auto channel = server.Connect(server.address());
  std::vector<std::thread> floods;
  for (int i = 0; i < 4; ++i) floods.emplace_back([&] { Flood(server.port()); });
  for (std::thread& flood : floods) flood.join();
  EXPECT_TRUE(server.Ask(channel).ok());
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(server.connections().stats().closed[static_cast<size_t>(CloseReason::kNoCall)], 4);
}

}  // namespace
}  // namespace perceptrond
