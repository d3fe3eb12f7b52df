#include "core/convergence/adwin.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

// Parts smaller than this prove nothing.
constexpr uint64_t kSmallestPart = 5;

double Epsilon(double n0, double n1, double variance, double width) {
  const double m = 1 / (1 / n0 + 1 / n1);
  const double d = std::log(2 * std::log(width) / Adwin::kDelta);
  return std::sqrt(2 * variance * d / m) + 2 * d / (3 * m);
}

}  // namespace

bool Adwin::Add(uint64_t right, bool mistake, Cut* cut) {
  bool was_cut = false;
  const uint64_t answers = right + (mistake ? 1 : 0);
  for (uint64_t i = 0; i < answers; ++i) {
    AddOne(i < right ? 0 : 1);
    if (++since_check_ < kClock) continue;
    since_check_ = 0;
    was_cut |= Check(cut);
  }
  return was_cut;
}

void Adwin::AddOne(uint32_t mistake) {
  if (levels_.empty()) levels_.emplace_back();
  Level& first = levels_[0];
  first.mistakes[first.count++] = mistake;
  ++size_;
  sum_ += mistake;
  if (first.count > kMost + 1) Merge();
}

void Adwin::Merge() {
  for (size_t i = 0; i < levels_.size() && levels_[i].count > kMost + 1; ++i) {
    if (i + 1 == levels_.size()) levels_.emplace_back();
    Level& from = levels_[i];
    Level& to = levels_[i + 1];
    to.mistakes[to.count++] = from.mistakes[0] + from.mistakes[1];
    std::copy(from.mistakes.begin() + 2, from.mistakes.begin() + static_cast<long>(from.count),
              from.mistakes.begin());
    from.count -= 2;
  }
}

bool Adwin::Check(Cut* cut) {
  bool was_cut = false;
  while (size_ > 2 * kSmallestPart && Differs(cut)) {
    DropOldest();
    was_cut = true;
  }
  return was_cut;
}

bool Adwin::Differs(Cut* cut) const {
  const auto width = static_cast<double>(size_);
  const double mean = sum_ / width;
  const double variance = mean * (1 - mean);
  double n0 = 0;
  double sum0 = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    for (size_t i = 0; i < levels_[level].count; ++i) {
      n0 += std::ldexp(1.0, static_cast<int>(level));
      sum0 += levels_[level].mistakes[i];
      const double n1 = width - n0;
      if (n1 < kSmallestPart) return false;
      if (n0 < kSmallestPart) continue;
      const double before = sum0 / n0;
      const double after = (sum_ - sum0) / n1;
      if (std::abs(before - after) < Epsilon(n0, n1, variance, width)) continue;
      *cut = {before, after};
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
