// How an analysis asks whether to go on.
#pragma once

#include "core/convergence/analysis/analysis.h"

namespace perceptrond {

// Calls back once for each kInterval of work, not by the clock: the calls are the same on each run.
// Not thread-safe: each analysis has its own.
class CancellationToken {
 public:
  explicit CancellationToken(AnalysisCallback keep_going) : keep_going_(keep_going) {}

  // Adds `work` multiplications; false once the analysis was cancelled.
  bool Spend(size_t work) {
    spent_ += work;
    return spent_ < kInterval ? !cancelled_ : Ask();
  }
  // Calls back at once: before and after what cannot be interrupted.
  bool Ask() {
    spent_ = 0;
    if (!cancelled_) cancelled_ = !keep_going_(progress);
    return !cancelled_;
  }
  bool cancelled() const { return cancelled_; }

  AnalysisProgress progress;

 private:
  // About 10 to 40 ms.
  static constexpr size_t kInterval = 10'000'000;

  AnalysisCallback keep_going_;
  size_t spent_ = 0;
  bool cancelled_ = false;
};

}  // namespace perceptrond
