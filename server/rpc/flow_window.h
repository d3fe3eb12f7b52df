// How much clients may send ahead of what is read.
#pragma once

#include <cstddef>

namespace perceptrond {

// Fixes the windows of HTTP/2 connections and of their streams, which gRPC would let grow to
// megabytes a stream, for all servers and channels that the process makes from now on. Any thread.
void SetFlowWindow(size_t bytes);

}  // namespace perceptrond
