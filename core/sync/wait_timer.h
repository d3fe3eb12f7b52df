// What each thread has waited for, so that a log of slow calls can tell waiting from work. Only a
// wait is measured: a lock that is free at once costs no look at the clock.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace perceptrond {

enum class Wait : uint8_t {
  // For a Mutex that another thread held.
  kLock,
  // For a model that is read from the journal, by this thread or another.
  kLoad,
  // For a commit.
  kCommit,
};
inline constexpr size_t kWaits = 3;

using WaitTimes = std::array<std::chrono::nanoseconds, kWaits>;

// How long this thread has waited so far.
inline constinit thread_local WaitTimes wait_times{};

// Adds the time that it lives to this thread's waits of one kind. A wait within another counts as
// part of the outer one.
class WaitTimer {
 public:
  explicit WaitTimer(Wait wait)
      : wait_(static_cast<size_t>(wait)),
        before_(wait_times),
        start_(std::chrono::steady_clock::now()) {}
  ~WaitTimer() {
    wait_times = before_;
    wait_times[wait_] += std::chrono::steady_clock::now() - start_;
  }
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  const size_t wait_;
  const WaitTimes before_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace perceptrond
