#include "tests/bench/load.h"

#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;
using Bytes = grpc::ByteBuffer;
using Stream = grpc::ClientReaderWriter<Bytes, Bytes>;
using Clock = std::chrono::steady_clock;

// In seconds.
double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Require(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s failed: %s\n", what, status.error_message().c_str());
  std::abort();
}

// Streams of bytes under the names of typed calls.
std::unique_ptr<Stream> Open(grpc::Channel& channel, Call call, grpc::ClientContext& context) {
  const grpc::internal::RpcMethod method(call == Call::kLearnStream
                                             ? "/perceptron.v1.LearningService/LearnStream"
                                             : "/perceptron.v1.PredictionService/PredictStream",
                                         grpc::internal::RpcMethod::BIDI_STREAMING);
  return std::unique_ptr<Stream>(
      grpc::internal::ClientReaderWriterFactory<Bytes, Bytes>::Create(&channel, method, &context));
}

template <typename Proto>
void Parse(Bytes& bytes, Proto& message) {
  Require(grpc::SerializationTraits<Proto>::Deserialize(&bytes, &message), "parsing an answer");
}

// Sends until the time or the messages are over.
void WriteAll(Stream& stream, Messages& messages, const StreamOptions& options) {
  const Clock::time_point start = Clock::now();
  for (uint64_t sent = 0; sent < options.messages && Since(start) < options.seconds; ++sent) {
    if (!stream.Write(messages.Take())) break;
  }
  stream.WritesDone();
}

// Counts what is answered.
void ReadAll(Stream& stream, Call call, StreamOutcome& outcome) {
  Bytes bytes;
  v1::LearnStreamResponse learned;
  v1::PredictResponse predicted;
  while (stream.Read(&bytes)) {
    if (call == Call::kPredictStream) {
      Parse(bytes, predicted);
      outcome.examples += predicted.scores_size();
      continue;
    }
    Parse(bytes, learned);
    for (const v1::LearnResult& result : learned.results()) {
      outcome.examples += result.examples();
      outcome.mistakes += result.mistakes();
      outcome.updates += result.updates();
    }
  }
}

constexpr int kWarmUp = 50;

}  // namespace

double Messages::bytes_an_example() const {
  size_t bytes = 0;
  for (const Bytes& message : rest) bytes += message.Length();
  return static_cast<double>(bytes) / static_cast<double>(examples);
}

const Bytes& Messages::Take() {
  const size_t taken = next;
  next = (next + 1) % size();
  return rest[taken];
}

StreamOutcome RunStream(grpc::Channel& channel, Messages& messages, const StreamOptions& options) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = Open(channel, options.call, context);
  Bytes opened;
  if (!stream->Write(messages.first) || !stream->Read(&opened)) {
    Require(stream->Finish(), "opening a stream");
    std::abort();
  }
  StreamOutcome outcome;
  const Clock::time_point start = Clock::now();
  std::thread writer([&] { WriteAll(*stream, messages, options); });
  ReadAll(*stream, options.call, outcome);
  outcome.seconds = Since(start);
  writer.join();
  Require(stream->Finish(), "a stream");
  return outcome;
}

Latency UnaryPredict(grpc::Channel& channel, Messages& messages, double seconds) {
  const grpc::internal::RpcMethod method("/perceptron.v1.PredictionService/Predict",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  std::vector<double> taken;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kWarmUp || taken.empty() || Since(start) < seconds; ++i) {
    const Bytes& message = messages.Take();
    const Clock::time_point asked = Clock::now();
    grpc::ClientContext context;
    v1::PredictResponse response;
    Bytes bytes;
    Require((grpc::internal::BlockingUnaryCall<Bytes, Bytes>(&channel, method, &context, message,
                                                             &bytes)),
            "Predict");
    Parse(bytes, response);
    if (i >= kWarmUp) taken.push_back(Since(asked));
  }
  std::sort(taken.begin(), taken.end());
  return {1e6 * taken[taken.size() / 2], 1e6 * taken[taken.size() * 99 / 100]};
}

}  // namespace perceptrond::bench
