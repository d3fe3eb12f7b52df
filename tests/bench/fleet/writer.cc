#include "tests/bench/fleet/writer.h"

#include <algorithm>

#include "tests/bench/fleet/row_source.h"

namespace perceptrond::bench::fleet {

WeightsHistory::WeightsHistory(size_t stride) : stride_(stride), less_(stride, 0.0) {
  weights_.emplace_back(stride, 0.0F);
}

bool WeightsHistory::Learn(const float* row) {
  const auto earlier = static_cast<double>(rows_++);
  if (Score(Newest(), row, stride_) > 0) return false;
  weights_.push_back(weights_.back());
  float* weights = weights_.back().data();
  for (size_t i = 0; i < stride_; ++i) {
    weights[i] += row[i];
    less_[i] += earlier * row[i];
  }
  return true;
}

std::vector<float> WeightsHistory::Mean() const {
  std::vector<float> mean = weights_.back();
  for (size_t i = 0; i < stride_; ++i)
    mean[i] -= static_cast<float>(less_[i] / static_cast<double>(std::max<uint64_t>(1, rows_)));
  return mean;
}

void WeightsHistory::DropBefore(uint64_t revision) {
  while (first_ < revision && weights_.size() > 1) {
    weights_.pop_front();
    ++first_;
  }
}

void CommitLog::Append(double now, uint64_t revision) {
  Advance(now);
  pending_ = revision;
  if (busy_until_ <= now) Start(now);
}

void CommitLog::Advance(double now) {
  while (pending_ > 0 && busy_until_ <= now) Start(busy_until_);
}

void CommitLog::Start(double now) {
  busy_until_ = now + duration_;
  ends_.push_back({busy_until_, pending_});
  pending_ = 0;
}

uint64_t CommitLog::CommittedAt(double time) const {
  const auto next = std::upper_bound(ends_.begin() + 1, ends_.end(), time,
                                     [](double t, const End& end) { return t < end.time; });
  return std::prev(next)->revision;
}

double CommitLog::EndOf(uint64_t revision) const {
  const auto end =
      std::lower_bound(ends_.begin(), ends_.end(), revision,
                       [](const End& each, uint64_t wanted) { return each.revision < wanted; });
  return end == ends_.end() ? busy_until_ + duration_ : end->time;
}

}  // namespace perceptrond::bench::fleet
