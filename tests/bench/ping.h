// Parts that ping_server and ping_pong share.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

namespace perceptrond::bench {

// A packed row of 75 features, and its score, label and distance.
inline constexpr size_t kQuestion = 620;
inline constexpr size_t kAnswer = 24;

enum class Waiting { kAsleep, kSpinning };

inline grpc::ByteBuffer Bytes(size_t size) {
  const grpc::Slice slice(std::string(size, 'x'));
  return grpc::ByteBuffer(&slice, 1);
}

// The next event; false if what it is of failed, or none comes any more.
inline bool Next(grpc::CompletionQueue& queue, Waiting waiting) {
  void* tag = nullptr;
  bool ok = false;
  if (waiting == Waiting::kAsleep) return queue.Next(&tag, &ok) && ok;
  grpc::CompletionQueue::NextStatus status;
  do {
    status = queue.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME));
  } while (status == grpc::CompletionQueue::TIMEOUT);
  return status == grpc::CompletionQueue::GOT_EVENT && ok;
}

}  // namespace perceptrond::bench
