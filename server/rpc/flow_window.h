// How much clients may send ahead of what is read.
#pragma once

#include <cstddef>

namespace perceptrond {

// Fixes HTTP/2's windows of all servers of the process, those of connections and of streams, which
// gRPC would let grow to megabytes a stream. To be called before the first of them is built.
void SetFlowWindow(size_t bytes);

}  // namespace perceptrond
