#include "client/ctl/roc_area.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace perceptrond::client {
namespace {

// Sign, exponent and the first 11 bits of the fraction choose the interval.
constexpr int kIntervalBits = 20;
constexpr int kDroppedBits = 32 - kIntervalBits;

// IEEE 754 numbers compare as their bits do once those of negative ones are inverted.
uint32_t KeyOf(float score) {
  // Adding 0 turns -0 into 0.
  const auto bits = std::bit_cast<uint32_t>(score + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | 1U << 31;
}

}  // namespace

void RocArea::Add(bool positive, float score) {
  if (std::isnan(score)) return;
  if (!counts_.empty()) {
    Count(positive, KeyOf(score));
    return;
  }
  (positive ? positives_ : negatives_).push_back(KeyOf(score));
  if (positives_.size() + negatives_.size() > most_exact_) CountAll();
}

void RocArea::Merge(const RocArea& other) {
  if (!other.counts_.empty() && counts_.empty()) CountAll();
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i].positive += other.counts_[i].positive;
    counts_[i].negative += other.counts_[i].negative;
  }
  positives_.insert(positives_.end(), other.positives_.begin(), other.positives_.end());
  negatives_.insert(negatives_.end(), other.negatives_.begin(), other.negatives_.end());
  if (!counts_.empty() || positives_.size() + negatives_.size() > most_exact_) CountAll();
}

void RocArea::Count(bool positive, uint32_t key) {
  Counts& counts = counts_[key >> kDroppedBits];
  ++(positive ? counts.positive : counts.negative);
}

void RocArea::CountAll() {
  counts_.resize(size_t{1} << kIntervalBits);
  for (const uint32_t key : positives_) Count(true, key);
  for (const uint32_t key : negatives_) Count(false, key);
  positives_ = {};
  negatives_ = {};
}

std::optional<RocArea::Area> RocArea::value() const {
  if (!counts_.empty()) {
    const Area area = CountedArea();
    return std::isnan(area.value) ? std::nullopt : std::optional<Area>(area);
  }
  if (positives_.empty() || negatives_.empty()) return std::nullopt;
  return ExactArea();
}

RocArea::Area RocArea::ExactArea() const {
  std::vector<uint32_t> positives = positives_;
  std::vector<uint32_t> negatives = negatives_;
  std::sort(positives.begin(), positives.end());
  std::sort(negatives.begin(), negatives.end());
  // Twice the pairs in order, so that halves are whole.
  uint64_t twice = 0;
  auto below = negatives.begin();
  auto not_above = negatives.begin();
  for (const uint32_t score : positives) {
    while (below != negatives.end() && *below < score) ++below;
    while (not_above != negatives.end() && *not_above <= score) ++not_above;
    twice += static_cast<uint64_t>((below - negatives.begin()) + (not_above - negatives.begin()));
  }
  return {static_cast<double>(twice) / 2 / static_cast<double>(positives.size()) /
              static_cast<double>(negatives.size()),
          0};
}

RocArea::Area RocArea::CountedArea() const {
  double negatives = 0;
  double positives = 0;
  double ordered = 0;
  double undecided = 0;
  for (const Counts& counts : counts_) {
    const auto positive = static_cast<double>(counts.positive);
    const auto negative = static_cast<double>(counts.negative);
    ordered += positive * (negatives + negative / 2);
    undecided += positive * negative / 2;
    positives += positive;
    negatives += negative;
  }
  // NaN without examples of both labels.
  const double pairs = positives * negatives;
  return {ordered / pairs, undecided / pairs};
}

}  // namespace perceptrond::client
