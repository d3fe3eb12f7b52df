#pragma once

#include <chrono>

namespace perceptrond::bench {

using Clock = std::chrono::steady_clock;

// In seconds.
inline double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace perceptrond::bench
