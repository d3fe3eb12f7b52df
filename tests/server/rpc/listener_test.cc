// Connections that the server accepts itself: served, counted, refused, closed; whatever becomes of
// their descriptors' numbers. The sockets that it listens on, and its probe of them.
#include "server/rpc/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/match.h"
#include "server/config/endpoint.h"
#include "server/rpc/listening_sockets.h"
#include "server/rpc/self_probe.h"
#include "server/rpc/transport.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;
using ::testing::HasSubstr;

// Many containers do not.
bool HasIpv6() {
  const int descriptor = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool bound =
      bind(descriptor, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  close(descriptor);
  return bound;
}

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
  Drain drain_;
  const Call::Method method_ = EchoRequest(drain_);
  Connections connections_;
  Acceptor acceptor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<grpc::Server> server_;
};

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
    if (address == "[::1]:0" && !HasIpv6()) continue;
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
      EXPECT_EQ(Reason(second), "TOO_MANY_STREAMS") << reached;
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
  EXPECT_EQ(Outcome(refused), "RESOURCE_EXHAUSTED TOO_MANY_CONNECTIONS");
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
  EXPECT_EQ(Outcome(call.Finish()), "DEADLINE_EXCEEDED REQUEST_TIMEOUT");
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

TEST(ListenOnTest, PortZeroTakesOnePortForAllAddressesOfAHost) {
  for (const char* address : {"127.0.0.1:0", "localhost:0", "[::1]:0", "0.0.0.0:0", "[::]:0"}) {
    if (address[0] == '[' && !HasIpv6()) continue;
    const auto listening = ListenOn(address);
    ASSERT_TRUE(listening.ok()) << address << ": " << listening.status();
    ASSERT_FALSE(listening->sockets.empty());
    const std::string port = listening->name.substr(listening->name.rfind(':'));
    EXPECT_NE(port, ":0");
    for (const ListeningSocket& socket : listening->sockets) {
      const SocketAddress bound = socket.address();
      const in_port_t actual = bound.family() == AF_INET6
                                   ? reinterpret_cast<const sockaddr_in6&>(bound.storage).sin6_port
                                   : reinterpret_cast<const sockaddr_in&>(bound.storage).sin_port;
      EXPECT_EQ(absl::StrCat(":", ntohs(actual)), port);
    }
  }
}

TEST(ListenOnTest, APortInUseIsAnErrorAndNotShared) {
  const auto first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = ListenOn(first->name);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("cannot listen on ", first->name)));
  EXPECT_FALSE(ListenOn("192.0.2.1:0").ok());
  EXPECT_FALSE(ListenOn("no-such-host.invalid:0").ok());
}

TEST(ListenOnTest, AUnixSocketIsReplacedOnlyIfNobodyListensAndRemovedAtTheEnd) {
  const TempDir dir;
  const std::string path = dir.path() + "/socket";
  const std::string address = "unix:" + path;
  {
    const auto first = ListenOn(address);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(first->name, address);
    EXPECT_THAT(std::string(ListenOn(address).status().message()),
                HasSubstr("another process listens there"));
    EXPECT_TRUE(IsListenedOn(path));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_THAT(std::string(ListenOn("unix:/" + std::string(200, 'x')).status().message()),
              HasSubstr("the system allows at most"));
}

// Accepts the probe's connections on a socket, for as long as it is asked to.
class Answerer {
 public:
  Answerer(const ListeningSocket& socket, const SelfProbe& probe)
      : thread_([this, &socket, &probe] {
          while (!stopping_) {
            SocketAddress remote;
            const int descriptor = accept4(socket.descriptor(), remote.get(), &remote.size, 0);
            if (descriptor < 0) continue;
            if (probe.IsOwn(remote)) ++own_;
            close(descriptor);
          }
        }) {}
  ~Answerer() { Stop(); }
  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void AwaitOwn(int count) const {
    while (own_ < count) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stopping_{false};
  std::atomic<int> own_{0};
  std::thread thread_;
};

TEST(SelfProbeTest, AnAddressThatStopsAnsweringIsReportedAfterThreeFailures) {
  const TempDir dir;
  for (const std::string& address :
       {std::string("127.0.0.1:0"), std::string("[::]:0"), "unix:" + dir.path() + "/socket"}) {
    if (address == "[::]:0" && !HasIpv6()) continue;
    const auto listening = ListenOn(address);
    ASSERT_TRUE(listening.ok());
    const ListeningSocket& socket = listening->sockets[0];
    absl::Notification failed;
    // Others are accepted for as long as the address answers: no failure counts, however slow it is.
    std::atomic<bool> answers{true};
    uint64_t accepted = 0;
    SelfProbe probe({{address, socket.address()}},
                    {.interval = absl::Milliseconds(1),
                     .timeout = absl::Milliseconds(200),
                     .accepted = [&] { return answers ? accepted += 2 : accepted; },
                     .on_failure =
                         [&](const std::string& name, const std::string& error) {
                           EXPECT_EQ(name, address);
                           EXPECT_FALSE(error.empty());
                           if (!failed.HasBeenNotified()) failed.Notify();
                         }});
    Answerer answerer(socket, probe);
    // One of them, at least, is answered in time, however busy the machine.
    answerer.AwaitOwn(50);
    EXPECT_FALSE(failed.HasBeenNotified());
    answerer.Stop();
    answers = false;
    failed.WaitForNotification();
  }
}

TEST(SelfProbeTest, AnAddressThatNeverAnsweredIsNotReported) {
  const auto listening = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(listening.ok());
  std::atomic<int> failures{0};
  {
    SelfProbe probe({{"silent", listening->sockets[0].address()}},
                    {.interval = absl::Milliseconds(1),
                     .timeout = absl::Milliseconds(1),
                     .on_failure = [&](const std::string&, const std::string&) { ++failures; }});
    // Each probe leaves a connection in the queue.
    for (int accepted = 0; accepted < 5;) {
      const int descriptor = accept4(listening->sockets[0].descriptor(), nullptr, nullptr, 0);
      if (descriptor < 0) continue;
      ++accepted;
      // Kept open and unanswered until the process ends.
    }
  }
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace perceptrond
