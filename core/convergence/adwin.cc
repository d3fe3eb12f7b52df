#include "core/convergence/adwin.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

// The header's d.
double D(uint64_t width) {
  return std::log(2 * std::log(static_cast<double>(width)) / Adwin::kDelta);
}

// More than D of any width.
constexpr double kMostD = 11;

// Parts smaller than this prove nothing.
constexpr uint64_t kSmallestPart = 5;

}  // namespace

bool Adwin::Add(uint64_t right, bool mistake, Change* change) {
  bool was_cut = false;
  const auto look = [&](uint64_t answers) {
    since_check_ += answers;
    if (since_check_ < kClock) return;
    since_check_ = 0;
    was_cut |= Check(change);
  };
  if (Quiet()) {
    // Every check in between would find nothing.
    if (right > 0) AddRun(0, right);
    since_check_ = (since_check_ + right) % kClock;
    right = 0;
  }
  while (right > 0) {
    const uint64_t run = std::min(right, kClock - since_check_);
    AddRun(0, run);
    right -= run;
    look(run);
  }
  if (mistake) {
    AddRun(1, 1);
    look(1);
  }
  return was_cut;
}

// Of each split |sum0 n1 - sum1 n0| is at most the sum times W, and must be 2 d W / 3 at least; d
// grows with W.
bool Adwin::Quiet() const {
  if (sum_ == 0) return true;
  return size_ > 2 && 3 * sum_ < 2 * kMostD && 3 * sum_ < 2 * D(size_);
}

void Adwin::AddRun(uint32_t mistakes, uint64_t answers) {
  size_ += answers;
  sum_ += mistakes;
  // What enters a level: a few buckets that may hold mistakes, and then some that hold none.
  std::array<uint32_t, kMost + 3> entering = {mistakes};
  size_t counted = 1;
  uint64_t empty = answers - 1;
  for (size_t i = 0; counted > 0; ++i) {
    if (i == levels_.size()) levels_.emplace_back();
    Level& level = levels_[i];
    const size_t known = level.count + counted;
    const uint64_t all = known + empty;
    const auto bucket = [&](uint64_t n) {
      if (n < level.count) return level.mistakes[n];
      return n < known ? entering[n - level.count] : 0;
    };
    // As when they came one by one: whenever there are too many, the oldest two become one of the
    // next size.
    const uint64_t merges = all > kMost + 1 ? (all - kMost) / 2 : 0;
    std::array<uint32_t, kMost + 3> merged{};
    const size_t merged_counted = std::min<uint64_t>(merges, (known + 1) / 2);
    for (size_t n = 0; n < merged_counted; ++n) merged[n] = bucket(2 * n) + bucket(2 * n + 1);
    std::array<uint32_t, kMost + 2> kept{};
    for (uint64_t n = 2 * merges; n < all; ++n) kept[n - 2 * merges] = bucket(n);
    level = {all - 2 * merges, kept};
    entering = merged;
    counted = merged_counted;
    empty = merges - merged_counted;
  }
}

bool Adwin::Check(Change* change) {
  bool was_cut = false;
  while (size_ > 2 * kSmallestPart && Differs(change)) {
    DropOldest();
    was_cut = true;
  }
  return was_cut;
}

// The header's inequality times n0 n1, with W / (n0 n1) for 1 / m: no division, and no root, for a
// split.
bool Adwin::Differs(Change* change) const {
  if (Quiet()) return false;
  const auto width = static_cast<double>(size_);
  const double mean = sum_ / width;
  const double d = D(size_);
  const double least = 2 * d * width / 3;
  const double spread = 2 * mean * (1 - mean) * d * width;
  double n0 = 0;
  double sum0 = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    for (size_t i = 0; i < levels_[level].count; ++i) {
      n0 += static_cast<double>(uint64_t{1} << level);
      sum0 += levels_[level].mistakes[i];
      const double n1 = width - n0;
      if (n1 < kSmallestPart) return false;
      if (n0 < kSmallestPart) continue;
      const double beyond = std::abs(sum0 * n1 - (sum_ - sum0) * n0) - least;
      if (beyond < 0 || beyond * beyond < spread * n0 * n1) continue;
      *change = {sum0 / n0, (sum_ - sum0) / n1};
      return true;
    }
  }
  return false;
}

void Adwin::DropOldest() {
  Level& oldest = levels_.back();
  size_ -= uint64_t{1} << (levels_.size() - 1);
  sum_ -= oldest.mistakes[0];
  std::copy(oldest.mistakes.begin() + 1, oldest.mistakes.begin() + static_cast<long>(oldest.count),
            oldest.mistakes.begin());
  if (--oldest.count == 0) levels_.pop_back();
}

}  // namespace perceptrond
