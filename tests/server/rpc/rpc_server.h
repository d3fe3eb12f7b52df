// A real server of the acceptor's calls, on loopback, and its clients: of one call of raw bytes; and without gRPC, to send what gRPC's
// own client may not. Reactors that record their callbacks and fail the test for callbacks that must not happen.
#pragma once

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/sync/mutex.h"
#include "gtest/gtest.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/rpc/workers.h"
#include "tests/support/api.h"
#include "tests/support/status.h"

namespace perceptrond::testing {

// Longer than a test may take: no wait of a test ends by it.
inline constexpr absl::Duration kLong = absl::Hours(1);

inline grpc::ByteBuffer ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string ToText(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return "";
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// At most so many bytes of fields that no message has, each of which takes sixteen times its two bytes once it is parsed.
inline std::string UnknownFields(size_t bytes) {
  std::string fields;
  while (fields.size() + 2 <= bytes) fields.append("\x78\0", 2);
  return fields;
}

// Work that runs until it is let go, and says so. To be destroyed after the workers.
struct HeldWork {
  HeldWork(Workers& workers, WorkSize size) {
    Workers::Work work = [this] {
      begun.Notify();
      go.WaitForNotification();
    };
    EXPECT_TRUE(workers.TrySchedule(size, work));
  }
  absl::Notification begun;
  absl::Notification go;
};

class RpcServer {
 public:
  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>;

  explicit RpcServer(Acceptor::Route route, int threads = 1, Interceptors interceptors = {},
                     Spin spin = {})
      : acceptor_(std::make_unique<Acceptor>(std::move(route))) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    acceptor_->AddTo(builder);
    if (!interceptors.empty())
      builder.experimental().SetInterceptorCreators(std::move(interceptors));
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
    acceptor_->Start(threads, std::move(spin));
  }
  ~RpcServer() { Stop(); }

  // Cancels what is under way, and waits until it is over.
  void Stop() {
    if (server_ == nullptr) return;
    acceptor_->Stop(*server_);
    server_.reset();
  }
  int port() const { return port_; }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect(grpc::ChannelArguments arguments = {}) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials(), arguments);
    EXPECT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kLong)));
    return channel;
  }

 private:
  int port_ = 0;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

// Each method waits until what it starts is done. One thread, but for Cancel.
class ClientCall {
 public:
  ClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path)
      : stub_(channel) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kLong));
    stream_ = stub_.PrepareCall(&context_, path, &queue_);
    stream_->StartCall(this);
  }
  ~ClientCall() {
    if (!ended_) {
      Cancel();
      Finish();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) {
    }
  }

  bool Started() { return started_ = started_ || Await(); }
  bool Write(const std::string& text) {
    if (!Started()) return false;
    stream_->Write(ToBytes(text), this);
    return Await();
  }
  bool WritesDone() {
    if (!Started()) return false;
    stream_->WritesDone(this);
    return Await();
  }
  bool Read(std::string& text) {
    if (!Started()) return false;
    grpc::ByteBuffer bytes;
    stream_->Read(&bytes, this);
    if (!Await()) return false;
    text = ToText(bytes);
    return true;
  }
  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    ended_ = true;
    Started();
    grpc::Status status;
    stream_->Finish(&status, this);
    Await();
    return status;
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool started_ = false;
  bool ended_ = false;
};

// A whole unary call.
inline grpc::Status AskBytes(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                             const std::string& request, std::string& answer) {
  ClientCall call(channel, path);
  call.Write(request);
  call.WritesDone();
  call.Read(answer);
  return call.Finish();
}

// A whole unary call of messages. `response` stays as it is unless the call succeeds.
template <typename Request, typename Response>
grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                 const Request& request, Response& response) {
  std::string answer;
  const grpc::Status status = AskBytes(channel, path, request.SerializeAsString(), answer);
  if (status.ok()) {
    EXPECT_TRUE(response.ParseFromString(answer));
  }
  return status;
}

// A connection that nothing has been said on yet.
inline int ConnectRaw(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return descriptor;
}

// RFC 9113, section 4.1.
inline std::string Http2Frame(char type, char flags, char stream, const std::string& payload) {
  const auto size = static_cast<char>(payload.size());
  return std::string{0, 0, size, type, flags, 0, 0, 0, stream} + payload;
}

// RFC 7541, section 6.2.2: no index, no Huffman code.
inline std::string Http2Literal(const std::string& text) {
  return std::string(1, static_cast<char>(text.size())) + text;
}

// Returns when the server has closed the connection, which this does not before.
inline void StartAndResetCall(int port, const std::string& path) {
  const std::string post_http = "\x83\x86";
  std::string headers = post_http + '\x04' + Http2Literal(path) + '\x01' + Http2Literal("host");
  headers += std::string(1, 0) + Http2Literal("content-type") + Http2Literal("application/grpc");
  headers += std::string(1, 0) + Http2Literal("te") + Http2Literal("trailers");
  const std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "") +
                           Http2Frame(1, 4, 1, headers) +
                           Http2Frame(3, 0, 1, std::string{0, 0, 0, 8});
  const int fd = ConnectRaw(port);
  EXPECT_EQ(send(fd, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  EXPECT_EQ(shutdown(fd, SHUT_WR), 0);
  for (char bytes[1024]; recv(fd, bytes, sizeof bytes, 0) > 0;) {
  }
  close(fd);
}

// Routes every path to the one method.
inline Acceptor::Route All(const Call::Method& method) {
  return [&method](const std::string& /*path*/) -> const Call::Method& { return method; };
}

// The callbacks of all reactors of a test, counted.
class CallCounts {
 public:
  void Begin() { Count(kBegun); }
  void Cancel() { Count(kCancelled); }
  void Done() { Count(kDone); }
  // Waits until the count is at least `calls`.
  bool AwaitBegun(int calls) { return Await(kBegun, calls); }
  bool AwaitCancelled(int calls) { return Await(kCancelled, calls); }
  bool AwaitDone(int calls) { return Await(kDone, calls); }
  int begun() { return Get(kBegun); }
  int cancelled() { return Get(kCancelled); }
  int done() { return Get(kDone); }

 private:
  enum What { kBegun, kCancelled, kDone };

  void Count(What what) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++calls_[what];
  }
  bool Await(What what, int least) ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto enough = [&]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_[what] >= least; };
    MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), kLong);
  }
  int Get(What what) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return calls_[what];
  }

  Mutex mutex_;
  std::array<int, 3> calls_ ABSL_GUARDED_BY(mutex_) = {};
};

// Counts the callbacks; fails the test for one that comes after OnDone, or twice.
class RecordingReactor : public Reactor {
 public:
  explicit RecordingReactor(CallCounts& counts) : counts_(counts) { counts_.Begin(); }
  ~RecordingReactor() override { EXPECT_TRUE(done_); }
  void OnReadDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnWriteDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnAlarm(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnCancel() override {
    EXPECT_FALSE(done_);
    EXPECT_FALSE(cancelled_.exchange(true));
    counts_.Cancel();
  }
  void OnDone() override {
    EXPECT_FALSE(done_.exchange(true));
    counts_.Done();
  }

 private:
  CallCounts& counts_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
};

// Sends each message back, then OK.
class Echo final : public RecordingReactor {
 public:
  Echo(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnReadDone(bool ok) override {
    RecordingReactor::OnReadDone(ok);
    ok ? call_.StartWrite(bytes_) : call_.Finish(grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    RecordingReactor::OnWriteDone(ok);
    ok ? Start() : call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() { call_.StartRead(&bytes_); }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
};

// Finishes when it is cancelled.
class UntilCancel final : public RecordingReactor {
 public:
  UntilCancel(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnCancel() override {
    RecordingReactor::OnCancel();
    call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() {}

 private:
  Call& call_;
};

// A method that answers its one request with itself.
inline Call::Method EchoRequest(Drain& drain) {
  return OnRequest(drain,
                   [](Call& call, const grpc::ByteBuffer& request) { call.FinishWith(request); });
}

template <typename Kind>
Call::Method Make(CallCounts& counts) {
  return [&counts](Call& call) {
    const auto reactor = std::make_shared<Kind>(call, counts);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond::testing
