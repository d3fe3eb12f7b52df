// The load generators: messages made beforehand as bytes, so that what is measured is the server's
// work and gRPC's, and as little of the client's own as can be.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <vector>

namespace perceptrond::bench {

// Messages to be sent round and round.
struct Messages {
  grpc::ByteBuffer first;
  std::vector<grpc::ByteBuffer> rest;
  // The examples of all of `rest`.
  size_t examples = 0;
  // The names that `rest` spells out.
  std::vector<std::string> names;
  // The next of `rest`: a stream goes on where the one before ended.
  size_t next = 0;

  size_t size() const { return rest.size(); }
  double bytes_an_example() const;
  const grpc::ByteBuffer& Take();
};

template <typename Proto>
grpc::ByteBuffer ToBytes(const Proto& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// The result of a stream.
struct StreamOutcome {
  uint64_t examples = 0;
  // Learning only.
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  double seconds = 0;

  double rate() const { return static_cast<double>(examples) / seconds; }
};

enum class Call { kLearnStream, kPredictStream };

struct StreamOptions {
  Call call = Call::kLearnStream;
  // Either may end it.
  double seconds = 1e9;
  uint64_t messages = UINT64_MAX;
};

// A writer and a reader thread on a stream of its own, from the first data message to the last
// answer. Aborts if the stream fails.
StreamOutcome RunStream(grpc::Channel& channel, Messages& messages, const StreamOptions& options);

// In microseconds.
struct Latency {
  double p50 = 0;
  double p99 = 0;
};

// One message after the other, each once the last is answered. The first ones are not counted.
Latency UnaryPredict(grpc::Channel& channel, Messages& messages, double seconds);

}  // namespace perceptrond::bench
