// How large a message may be, and how much a stream may have unanswered before it is no longer
// read, so that gRPC's flow control holds the sender back.
#pragma once

#include <cstddef>

namespace perceptrond {

struct StreamLimits {
  size_t messages = 1024;
  // Of what unanswered messages leave in memory: their answers, and their share of updates for the
  // journal.
  size_t bytes = 16 << 20;
  // Of one message.
  size_t message_bytes = 16 << 20;
};

}  // namespace perceptrond
