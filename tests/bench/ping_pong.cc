// How fast a question can be answered at all, one at a time, with nothing computed: prints a table
// of microseconds from a question of one prediction's size to its answer, p50 and p99, medians of
// interleaved rounds. First the kernel alone, then gRPC by its three kinds of server and two kinds
// of client. GRPC_POLL_STRATEGY and the like may be set from outside.
//
//   ping_pong [SECONDS A ROUND [ROUNDS]]
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/ping.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Asked = std::function<void()>;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::abort();
}

// The kernel alone: a thread at each end of a connection.
class Sockets {
 public:
  Sockets(bool tcp, Waiting waiting) : waiting_(waiting) {
    if (tcp) {
      Connect();
    } else {
      Require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) == 0, "socketpair");
    }
    server_ = std::thread([this] {
      std::array<char, kAnswer> answer = {};
      while (Receive(ends_[0], kQuestion)) Send(ends_[0], answer.data(), answer.size());
    });
  }
  ~Sockets() {
    shutdown(ends_[1], SHUT_RDWR);
    server_.join();
    for (const int end : ends_) close(end);
  }
  void Ask() {
    const std::array<char, kQuestion> question = {};
    Send(ends_[1], question.data(), question.size());
    Require(Receive(ends_[1], kAnswer), "recv");
  }

 private:
  void Connect() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    socklen_t size = sizeof at;
    Require(bind(listening, address, size) == 0 && listen(listening, 1) == 0, "listen");
    Require(getsockname(listening, address, &size) == 0, "getsockname");
    ends_[1] = socket(AF_INET, SOCK_STREAM, 0);
    Require(connect(ends_[1], address, size) == 0, "connect");
    ends_[0] = accept(listening, nullptr, nullptr);
    close(listening);
    const int on = 1;
    for (const int end : ends_) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  static void Send(int end, const char* bytes, size_t size) {
    Require(send(end, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "send");
  }
  // False at the end.
  bool Receive(int end, size_t size) const {
    std::array<char, kQuestion> bytes;
    while (size > 0) {
      const int flags = waiting_ == Waiting::kSpinning ? MSG_DONTWAIT : 0;
      const ssize_t got = recv(end, bytes.data(), size, flags);
      if (got == 0) return false;
      if (got > 0) size -= static_cast<size_t>(got);
    }
    return true;
  }

  const Waiting waiting_;
  std::array<int, 2> ends_ = {};
  std::thread server_;
};

// A stream of questions; the thread that asks looks for the answer itself.
class Client {
 public:
  Client(const std::string& address, Waiting waiting)
      : waiting_(waiting),
        stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        question_(Bytes(kQuestion)),
        stream_(stub_.PrepareCall(&context_, "/ping.Pong/Ask", &queue_)) {
    stream_->StartCall(this);
    Await();
  }
  ~Client() {
    stream_->WritesDone(this);
    Await();
    grpc::Status status;
    stream_->Finish(&status, this);
    Await();
  }
  void Ask() {
    stream_->Write(question_, this);
    Await();
    stream_->Read(&answer_, this);
    Await();
  }

 private:
  void Await() { Require(Next(queue_, waiting_), "asking"); }

  const Waiting waiting_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  const grpc::ByteBuffer question_;
  grpc::ByteBuffer answer_;
  const std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

struct Way {
  std::string name;
  // Calls `ask` with what asks one question, as long as the connection stands.
  std::function<void(const std::function<void(const Asked&)>& ask)> connected;
  std::vector<double> p50;
  std::vector<double> p99;
};

void Time(Way& way, double seconds) {
  way.connected([&](const Asked& ask) {
    std::vector<double> taken;
    constexpr int kWarmUp = 50;
    for (int i = 0; i < kWarmUp; ++i) ask();
    const Clock::time_point start = Clock::now();
    Clock::time_point now = start;
    while (now - start < std::chrono::duration<double>(seconds)) {
      const Clock::time_point asked = now;
      ask();
      now = Clock::now();
      taken.push_back(std::chrono::duration<double, std::micro>(now - asked).count());
    }
    std::sort(taken.begin(), taken.end());
    way.p50.push_back(taken[taken.size() / 2]);
    way.p99.push_back(taken[taken.size() * 99 / 100]);
  });
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Way OfSockets(bool tcp, Waiting waiting) {
  const char* const how = waiting == Waiting::kAsleep ? "asleep" : "spinning";
  return {std::string("the kernel | ") + how + " | " + how,
          [=](const auto& use) {
            Sockets sockets(tcp, waiting);
            use([&] { sockets.Ask(); });
          },
          {},
          {}};
}

Way OfGrpc(const std::string& address, const char* kind, Waiting waiting) {
  return {
      std::string("gRPC | ") + kind + " | " + (waiting == Waiting::kAsleep ? "asleep" : "spinning"),
      [=](const auto& use) {
        const testing::Process server({PING_SERVER_BINARY, kind, address});
        Client client(server.addresses()[0], waiting);
        use([&] { client.Ask(); });
      },
      {},
      {}};
}

void Measure(const char* by, bool tcp, const std::string& address, double seconds, int rounds) {
  std::vector<Way> ways = {OfSockets(tcp, Waiting::kAsleep), OfSockets(tcp, Waiting::kSpinning)};
  for (const char* kind : {"callbacks", "asleep", "spinning"}) {
    for (const Waiting waiting : {Waiting::kAsleep, Waiting::kSpinning})
      ways.push_back(OfGrpc(address, kind, waiting));
  }
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) Time(way, seconds);
  }
  for (const Way& way : ways) {
    std::printf("| %s | %s | %.1f | %.1f |\n", by, way.name.c_str(), Median(way.p50),
                Median(way.p99));
  }
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  const perceptrond::testing::TempDir dir;
  std::puts("| over | by | server | client | p50 us | p99 us |\n|---|---|---|---|---|---|");
  perceptrond::bench::Measure("Unix", false, "unix:" + dir.path() + "/ping", seconds, rounds);
  perceptrond::bench::Measure("TCP", true, "127.0.0.1:0", seconds, rounds);
}
