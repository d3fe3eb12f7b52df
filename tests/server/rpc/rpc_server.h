// A real server of the acceptor's calls, on loopback, and a client of one call of raw bytes.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
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

// The reason in the ErrorInfo of a call's status; empty if there is none.
inline std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return "";
  return ReasonOf(FromProto(details));
}

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

}  // namespace perceptrond::testing
