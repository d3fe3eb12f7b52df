// What answering one request spends its time on, for the log of slow calls.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/sync/wait_timer.h"

namespace perceptrond {

using SteadyClock = std::chrono::steady_clock;

// In the order in which a log line states them.
enum class Part : uint8_t {
  // The request of a unary call has not arrived yet.
  kReceive,
  // The request waits for a worker, or for earlier messages of its stream.
  kQueue,
  kParse,
  // A model is read from the journal.
  kLoad,
  // Another thread holds a lock, such as a model's.
  kLock,
  // Reading the examples, scoring, learning; making the answer of a unary call.
  kWork,
  // Another server of the fleet, which writes the model, handles the request.
  kForward,
  // The answer is ready but for its durability: the journal's append and what it waits for.
  kCommit,
  // From the finished answer until gRPC has taken it. Longer where the client does not read.
  kWrite,
};
inline constexpr size_t kParts = 9;

// In milliseconds. They add up to the time since the start.
using PartTimes = std::array<float, kParts>;

inline float& TimeOf(PartTimes& parts, Part part) { return parts[static_cast<size_t>(part)]; }

inline float ToMilliseconds(SteadyClock::duration time) {
  return std::chrono::duration<float, std::milli>(time).count();
}

// Adds time that was spent on work, less what the thread waited for meanwhile. `before` and
// `after`: wait_times of the thread that worked.
void AddWork(SteadyClock::duration time, const WaitTimes& before, const WaitTimes& after,
             PartTimes& parts);

// When the polling thread received the event that it handles: a look at the clock that is taken
// anyway.
inline constinit thread_local SteadyClock::time_point polled_event_time{};

// The time of the event that this polling thread handles; on other threads the current time.
inline SteadyClock::time_point EventTime() {
  const SteadyClock::time_point unset{};
  return polled_event_time == unset ? SteadyClock::now() : polled_event_time;
}

// A stopwatch for the request of a unary call: each moment since Start counts for exactly one part.
// Does nothing until it is started.
//
// Thread contract: one thread at a time.
class CallTiming {
 public:
  void Start(Part part, SteadyClock::time_point now);
  // The time from now on is spent on `part`. Nothing changes after Stop.
  void Switch(Part part) {
    if (running_) SwitchAt(part, SteadyClock::now());
  }
  void SwitchAt(Part part, SteadyClock::time_point now);
  // The answer was given to gRPC: the rest of the time is spent on writing it.
  void Stop(int code);

  bool started() const { return started_; }
  // Of the time from Start until `now`, once it is stopped.
  PartTimes PartsUntil(SteadyClock::time_point now) const;
  SteadyClock::time_point start() const { return start_; }
  // A grpc::StatusCode.
  int code() const { return code_; }

  // Stated in the line: the name of the model, at most kMaxNameBytes of it, the size of the
  // request, and its examples.
  static constexpr size_t kMaxNameBytes = 256;
  std::string model;
  size_t bytes = 0;
  size_t rows = 0;

 private:
  bool started_ = false;
  bool running_ = false;
  Part part_ = Part::kReceive;
  int code_ = 0;
  SteadyClock::time_point start_;
  // When part_ began.
  SteadyClock::time_point last_;
  // The waits of the thread that began part_, and what they were then.
  const WaitTimes* thread_ = nullptr;
  WaitTimes waits_{};
  PartTimes parts_{};
};

}  // namespace perceptrond
