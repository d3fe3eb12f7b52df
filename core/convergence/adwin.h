// ADWIN: a window over the mistake sequence that grows while its mean stands still and drops its
// older part when the newer one differs: drift.
//
//   keep      the newest W answers (1: a mistake) in buckets of 1, 2, 4, ... answers, at most
//             kMost + 1 of a size: O(log W) memory
//   cut       where some split of the window into an older part of n0 and a newer of n1 answers has
//             |mean0 - mean1| >= eps,  m = 1 / (1 / n0 + 1 / n1),  d = ln(2 ln(W) / delta),
//             eps = sqrt(2 v d / m) + 2 d / (3 m),  v the window's variance: the oldest bucket
//             goes, again and again while that holds
//   proves    while the error stands still, a cut happens at any one step with probability below
//             delta
//   source    Bifet, Gavalda: Learning from Time-Changing Data with Adaptive Windowing, SDM 2007,
//             section 3 and theorem 3.2; buckets: Datar, Gionis, Indyk, Motwani 2002
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perceptrond {

// Not thread-safe: core/ledger/ledger.h guards it.
class Adwin {
 public:
  static constexpr double kDelta = 0.002;
  // Answers between two checks for a cut.
  static constexpr uint64_t kClock = 32;

  // The mean of the window before and after a cut.
  struct Change {
    double error_before = 0;
    double error_after = 0;
  };

  // Adds `right` right answers and then, if `mistake`, a mistake. Returns whether the window was
  // cut, and in `change` the last cut. O(log W) for each kClock answers, twice that at a check.
  bool Add(uint64_t right, bool mistake, Change* change);

  // Answers in the window, and the share of mistakes among them.
  uint64_t size() const { return size_; }
  double error() const { return size_ == 0 ? 0 : sum_ / static_cast<double>(size_); }
  // Approximately.
  size_t memory_bytes() const { return levels_.size() * sizeof(Level); }

 private:
  static constexpr size_t kMost = 5;
  // Buckets of one size, the oldest first: how many mistakes each has.
  struct Level {
    size_t count = 0;
    std::array<uint32_t, kMost + 2> mistakes{};
  };

  // Adds `answers` answers, > 0, of which only the first may be a mistake.
  void AddRun(uint32_t mistakes, uint64_t answers);
  // Whether there are so few mistakes that nothing is to be cut, nor will be by right answers.
  // O(1).
  bool Quiet() const;
  bool Check(Change* change);
  // Whether the window should be cut somewhere.
  bool Differs(Change* change) const;
  void DropOldest();

  std::vector<Level> levels_;
  uint64_t size_ = 0;
  double sum_ = 0;
  uint64_t since_check_ = 0;
};

}  // namespace perceptrond
