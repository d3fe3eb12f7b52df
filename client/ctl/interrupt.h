// Ctrl-C, made polite: the first asks to stop, the second kills.
#pragma once

#include <functional>
#include <thread>

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

}  // namespace perceptrond::client
