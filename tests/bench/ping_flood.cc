// How many messages of 100 packed rows' size gRPC's kinds of server can receive and answer one by
// one, with nothing computed: prints a table of messages a second, medians of interleaved rounds.
// One thread writes as fast as it may, one reads the answers.
//
//   ping_flood [SECONDS A ROUND [ROUNDS]]
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/ping.h"
#include "tests/support/process.h"

namespace perceptrond::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

constexpr size_t kMessage = 60000;

double MessagesASecond(const std::string& address, double seconds) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const grpc::internal::RpcMethod method("/ping.Pong/Flood",
                                         grpc::internal::RpcMethod::BIDI_STREAMING);
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          channel.get(), method, &context));
  const Clock::time_point start = Clock::now();
  const auto taken = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::thread writer([&] {
    const grpc::ByteBuffer message = Bytes(kMessage);
    while (taken() < seconds && stream->Write(message)) {
    }
    stream->WritesDone();
  });
  uint64_t answers = 0;
  for (grpc::ByteBuffer answer; stream->Read(&answer);) ++answers;
  const double rate = static_cast<double>(answers) / taken();
  writer.join();
  if (!stream->Finish().ok()) std::abort();
  return rate;
}

void Run(double seconds, int rounds) {
  struct Kind {
    const char* name;
    std::vector<double> rates;
  };
  std::vector<Kind> kinds = {{"callbacks", {}}, {"asleep", {}}, {"spinning", {}}};
  for (int round = 0; round < rounds; ++round) {
    for (Kind& kind : kinds) {
      const testing::Process server({PING_SERVER_BINARY, kind.name, "127.0.0.1:0"});
      kind.rates.push_back(MessagesASecond(server.addresses()[0], seconds));
    }
  }
  std::puts("| server | messages/s |\n|---|---|");
  for (Kind& kind : kinds) {
    std::sort(kind.rates.begin(), kind.rates.end());
    std::printf("| %s | %.0f |\n", kind.name, kind.rates[kind.rates.size() / 2]);
  }
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::Run(argc > 1 ? std::atof(argv[1]) : 1, argc > 2 ? std::atoi(argv[2]) : 7);
}
