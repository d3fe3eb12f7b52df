// How long ago a log had entries that its reader has not applied. The clock is the reader's own, and monotonic: by the
// times in the entries a reader whose clock is ahead would seem late.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace perceptrond {

// Not thread-safe.
class LogLag {
 public:
  using Clock = std::chrono::steady_clock;

  // The log has entries up to this one.
  void OnEnd(uint64_t sequence, Clock::time_point now);
  // Entries up to this one were applied.
  void OnApplied(uint64_t sequence);
  // Those that are known were applied.
  void OnLevel() { ends_.clear(); }
  // The time since the log is known to have an entry that is not applied; 0: all that are known were.
  Clock::duration At(Clock::time_point now) const;

 private:
  struct End {
    uint64_t sequence;
    Clock::time_point time;
  };
  // Beyond it every other end is forgotten, so that the lag may be taken for less than it is, by what passed between
  // two ends.
  static constexpr size_t kMostEnds = 256;

  // Those beyond what was applied, by sequence and time.
  std::deque<End> ends_;
};

}  // namespace perceptrond
