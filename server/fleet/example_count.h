// Counts examples of a request that is passed on and not read here.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>

namespace perceptrond {

// The examples of a LearnRequest's bytes, as CountRequestRows counts those of the parsed request; 0
// if it is malformed. O(fields).
size_t CountExamplesIn(grpc::ByteBuffer& request);

}  // namespace perceptrond
