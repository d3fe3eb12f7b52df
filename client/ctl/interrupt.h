// Ctrl-C, made polite: the first asks to stop, the second kills.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace perceptrond::client {

// Takes over SIGINT, SIGTERM and, unless it is ignored, SIGHUP. Call once, before anything else of
// this file.
void CatchInterrupts();

// True once a signal came. Threads: any.
bool Interrupted();

// Waits until `descriptor` can be read without blocking; false if a signal or StopReading() came
// first. Threads: any.
bool WaitReadable(int descriptor);
// Whether it would not wait. Threads: any.
bool ReadableNow(int descriptor);
// Whoever is in WaitReadable() need not wait any more: what is read there has nowhere to go.
// Threads: any.
void StopReading();

// Blocks until a signal came or `descriptor` (-1: none) can be read. Threads: any.
void WaitInterrupted(int descriptor);

// While it lives: once a signal came, calls `look` five times a second until it returns false.
// `look` runs on a thread of its own.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<bool()> look);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  int end_[2] = {-1, -1};
  std::thread thread_;
};

// Threads: any.
class Connectivity {
 public:
  // Says once for each loss why the connection broke.
  void Lost(const absl::Status& status);
  void Answered() { away_ = false; }
  bool away() const { return away_; }

 private:
  std::atomic<bool> away_{false};
};

// While it lives, Ctrl-C is looked after: what is under way is finished, but `cancel` is called
// where the server is away. `cancel` runs on another thread.
class StreamInterrupt {
 public:
  StreamInterrupt(const Connectivity* connectivity, std::function<void()> cancel);

 private:
  bool Look();

  const Connectivity* const connectivity_;
  const std::function<void()> cancel_;
  int looks_ = 0;
  // Last: its thread uses the above.
  const InterruptWatch watch_;
};

}  // namespace perceptrond::client
