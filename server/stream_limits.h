// How much a stream may have unanswered before it is no longer read, so that gRPC's flow control
// holds the sender back.
#pragma once

#include <cstddef>

namespace perceptrond {

struct StreamLimits {
  size_t messages = 64;
  size_t bytes = 16 << 20;
};

}  // namespace perceptrond
