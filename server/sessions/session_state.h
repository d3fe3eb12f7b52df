// How a stream's session stands, as the reactor that carries the stream asks for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/rpc/backend.h"

namespace perceptrond {

// A session's state at one moment.
struct SessionState {
  // Of a session with that many unanswered messages of that many bytes.
  SessionState(const StreamLimits& limits, size_t messages, size_t bytes)
      : idle(messages == 0),
        answer_bytes(bytes),
        room_messages(limits.messages - std::min(messages, limits.messages)),
        room_bytes(limits.bytes - std::min(bytes, limits.bytes)) {}
  // Of a session that has accepted nothing.
  SessionState() = default;

  // Whether too much is unanswered, counting `messages` with `bytes` that are not accepted yet: the
  // stream should not be read until a response was taken.
  bool Full(size_t messages = 0, size_t bytes = 0) const {
    return messages >= room_messages || bytes >= room_bytes;
  }

  // An error if the stream must end although its messages were valid.
  absl::Status failure;
  // Every accepted message is answered.
  bool idle = true;
  // What unanswered messages keep in memory.
  size_t answer_bytes = 0;
  // What the session keeps in memory as long as the stream lasts.
  size_t name_table_bytes = 0;
  // A response was taken.
  bool has_response = false;
  // Answers that are ready and were not taken.
  size_t ready_answers = 0;
  // What may be accepted before a response is taken.
  size_t room_messages = SIZE_MAX;
  size_t room_bytes = SIZE_MAX;
};

}  // namespace perceptrond
