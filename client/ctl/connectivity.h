// Whether a stream's server is there: said when it is lost, and asked when Ctrl-C comes.
#pragma once

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "client/ctl/interrupt.h"

namespace perceptrond::client {

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
