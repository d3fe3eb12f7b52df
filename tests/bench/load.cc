#include "tests/bench/load.h"

#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "tests/bench/clock.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;
using Bytes = grpc::ByteBuffer;
using Stream = grpc::ClientReaderWriter<Bytes, Bytes>;

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

class Writer {
 public:
  Writer(Stream& stream, Messages& messages, const StreamOptions& options,
         const std::atomic<uint64_t>& answered)
      : stream_(stream), messages_(messages), options_(options), answered_(answered) {}

  void Run() {
    const Clock::time_point start = Clock::now();
    uint64_t examples = 0;
    for (uint64_t sent = 0; sent < options_.messages && !Finished(start); ++sent) {
      if (options_.rate > 0) {
        std::this_thread::sleep_until(
            start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                        static_cast<double>(examples) / options_.rate)));
      }
      for (uint64_t seen = answered_; sent > seen && sent - seen >= options_.max_unanswered;
           seen = answered_)
        answered_.wait(seen);
      const auto [message, size] = messages_.Take();
      if (!stream_.Write(message)) break;
      examples += size;
    }
    stream_.WritesDone();
  }

 private:
  bool Finished(Clock::time_point start) const {
    return Since(start) >= options_.seconds || (options_.stop != nullptr && *options_.stop);
  }

  Stream& stream_;
  Messages& messages_;
  const StreamOptions& options_;
  // Messages.
  const std::atomic<uint64_t>& answered_;
};

void Count(int messages, std::atomic<uint64_t>& answered) {
  answered += static_cast<uint64_t>(messages);
  answered.notify_one();
}

// Counts what is answered. When no more is, the writer waits for nothing.
void ReadAll(Stream& stream, Call call, StreamOutcome& outcome, std::atomic<uint64_t>& answered) {
  Bytes bytes;
  v1::LearnStreamResponse learned;
  v1::PredictResponse predicted;
  while (stream.Read(&bytes)) {
    if (call == Call::kPredictStream) {
      Parse(bytes, predicted);
      outcome.examples += predicted.scores_size();
      Count(1, answered);
      continue;
    }
    Parse(bytes, learned);
    for (const v1::LearnResult& result : learned.results()) {
      outcome.examples += result.examples();
      outcome.mistakes += result.mistakes();
      outcome.updates += result.updates();
    }
    Count(learned.results_size(), answered);
  }
}

constexpr int kWarmUp = 50;

Latency Summarize(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  return {1e6 * seconds[seconds.size() / 2], 1e6 * seconds[seconds.size() * 99 / 100]};
}

// Times `ask(message)` over and over.
template <typename Ask>
Latency TimeEach(Messages& messages, double seconds, Ask ask) {
  std::vector<double> taken;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kWarmUp || taken.empty() || Since(start) < seconds; ++i) {
    const Bytes message = messages.Take().first;
    const Clock::time_point asked = Clock::now();
    ask(message);
    if (i >= kWarmUp) taken.push_back(Since(asked));
  }
  return Summarize(std::move(taken));
}

}  // namespace

double Messages::bytes_an_example() const {
  size_t bytes = 0;
  for (const Bytes& message : rest) bytes += message.Length();
  return static_cast<double>(bytes) / static_cast<double>(total_examples());
}

std::pair<Bytes, int> Messages::Take() {
  const size_t taken = next;
  next = (next + 1) % size();
  return {rest[taken], examples[taken]};
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
  std::atomic<uint64_t> answered = 0;
  std::thread writer([&] { Writer(*stream, messages, options, answered).Run(); });
  ReadAll(*stream, options.call, outcome, answered);
  Count(INT_MAX, answered);
  outcome.seconds = Since(start);
  writer.join();
  Require(stream->Finish(), "a stream");
  return outcome;
}

Latency UnaryPredict(grpc::Channel& channel, Messages& messages, double seconds) {
  const grpc::internal::RpcMethod method("/perceptron.v1.PredictionService/Predict",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  return TimeEach(messages, seconds, [&](const Bytes& message) {
    grpc::ClientContext context;
    v1::PredictResponse response;
    Bytes bytes;
    Require((grpc::internal::BlockingUnaryCall<Bytes, Bytes>(&channel, method, &context, message,
                                                             &bytes)),
            "Predict");
    Parse(bytes, response);
  });
}

Latency StreamPredict(grpc::Channel& channel, Messages& messages, double seconds) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = Open(channel, Call::kPredictStream, context);
  v1::PredictResponse response;
  Bytes bytes;
  if (!stream->Write(messages.first) || !stream->Read(&bytes)) std::abort();
  const Latency latency = TimeEach(messages, seconds, [&](const Bytes& message) {
    if (!stream->Write(message) || !stream->Read(&bytes)) std::abort();
    Parse(bytes, response);
  });
  stream->WritesDone();
  Require(stream->Finish(), "PredictStream");
  return latency;
}

}  // namespace perceptrond::bench
