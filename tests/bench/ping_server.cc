// The other end of ping_pong: answers each question of a stream with as many bytes as a prediction
// has, by one of gRPC's kinds of server.
//   ping_server callbacks|asleep|spinning ADDRESS
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "tests/bench/ping.h"

namespace perceptrond::bench {
namespace {

// As perceptrond's: gRPC's threads call back.
class CallbackService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new Reactor;
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() : answer_(Bytes(kAnswer)) { StartRead(&question_); }
    void OnReadDone(bool ok) override {
      if (ok) {
        StartWrite(&answer_);
      } else {
        Finish(grpc::Status::OK);
      }
    }
    void OnWriteDone(bool ok) override {
      if (ok) StartRead(&question_);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer question_;
    const grpc::ByteBuffer answer_;
  };
};

// One thread that asks a completion queue, and serves a stream at a time.
void Serve(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
           Waiting waiting) {
  const grpc::ByteBuffer answer = Bytes(kAnswer);
  void* const tag = &service;
  while (true) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    service.RequestCall(&context, &stream, &queue, &queue, tag);
    if (!Next(queue, waiting)) return;
    for (grpc::ByteBuffer question;;) {
      stream.Read(&question, tag);
      if (!Next(queue, waiting)) break;
      stream.Write(answer, tag);
      if (!Next(queue, waiting)) break;
    }
    stream.Finish(grpc::Status::OK, tag);
    Next(queue, waiting);
  }
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  using namespace perceptrond::bench;
  if (argc != 3) {
    std::fputs("usage: ping_server callbacks|asleep|spinning ADDRESS\n", stderr);
    return 2;
  }
  const std::string kind = argv[1];
  const std::string address = argv[2];
  CallbackService callbacks;
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  if (kind == "callbacks") {
    builder.RegisterCallbackGenericService(&callbacks);
  } else {
    builder.RegisterAsyncGenericService(&service);
    queue = builder.AddCompletionQueue();
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  const bool tcp = address.rfind("unix:", 0) != 0;
  std::fprintf(stderr, "ping_server serving address=%s\n",
               tcp ? ("127.0.0.1:" + std::to_string(port)).c_str() : address.c_str());
  if (queue == nullptr) {
    server->Wait();
  } else {
    // Until it is killed.
    Serve(service, *queue, kind == "spinning" ? Waiting::kSpinning : Waiting::kAsleep);
  }
}
