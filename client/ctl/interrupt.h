// Ctrl-C: the first one asks a run to stop cleanly, the second one kills the process.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace perceptrond::client {

// Handles SIGINT, SIGTERM and, unless it is ignored, SIGHUP. Call once, before the other functions
// of this file.
void CatchInterrupts();

// Whether a signal was received. Threads: any.
bool Interrupted();

// Waits until `descriptor` can be read without blocking. False: a signal or StopReading() came
// first, or `stop` (-1: none) can be read. Threads: any.
bool WaitReadable(int descriptor, int stop = -1);
// Whether `descriptor` can be read without blocking. Threads: any.
bool ReadableNow(int descriptor);
// Ends all WaitReadable() calls: the stream has failed, so more input is of no use. Threads: any.
void StopReading();

// Blocks until a signal was received or `descriptor` (-1: none) can be read. Threads: any.
void WaitInterrupted(int descriptor);

// During its lifetime, once a signal was received, calls `on_interrupt` every 200 ms on a thread of
// its own until the callback returns false.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<bool()> on_interrupt);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  int end_[2] = {-1, -1};
  std::thread thread_;
};

// Whether the connection of a stream is lost. Threads: any.
class Connectivity {
 public:
  // Prints the reason, once for each loss.
  void OnLost(const absl::Status& status);
  void OnAnswer() { lost_ = false; }
  bool lost() const { return lost_; }

 private:
  std::atomic<bool> lost_{false};
};

// Ctrl-C during a stream: messages in flight are finished, unless the connection is lost; then
// `cancel` is called, on another thread.
class StreamInterrupt {
 public:
  StreamInterrupt(const Connectivity* connectivity, std::function<void()> cancel);

 private:
  bool OnInterrupt();

  const Connectivity* const connectivity_;
  const std::function<void()> cancel_;
  int polls_ = 0;
  // Declared last: its thread uses the members above.
  const InterruptWatch watch_;
};

}  // namespace perceptrond::client
