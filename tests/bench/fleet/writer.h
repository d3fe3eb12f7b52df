// The writer of the simulated fleet: its weights at each revision that a replica may still have, its
// commits, and its rate of updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace perceptrond::bench::fleet {

// A perceptron and its past. The revision is the number of updates.
class WeightsHistory {
 public:
  explicit WeightsHistory(size_t stride);

  uint64_t revision() const { return first_ + weights_.size() - 1; }
  const float* Newest() const { return weights_.back().data(); }
  // A revision that was not dropped.
  const float* At(uint64_t revision) const { return weights_[revision - first_].data(); }
  // Updates the newest weights if the row is a mistake on them; returns whether it was.
  bool Learn(const float* row);
  // A row that a replica found to be right.
  void CountRight() { ++rows_; }
  void DropBefore(uint64_t revision);
  // Over all rows, the mean of the weights after each.
  std::vector<float> Mean() const;

 private:
  const size_t stride_;
  uint64_t first_ = 0;
  std::deque<std::vector<float>> weights_;
  uint64_t rows_ = 0;
  // For each update, the number of earlier rows times what it added: the sum of the weights over all
  // rows is the number of rows times the newest weights, less this.
  std::vector<double> less_;
};

// Group commit: one commit at a time, of all updates made before it began. Times are in seconds, and
// calls are in their order.
class CommitLog {
 public:
  explicit CommitLog(double duration) : duration_(duration) { ends_.push_back({0, 0}); }

  // Appends the updates up to this revision, made at `now`.
  void Append(double now, uint64_t revision);
  // Starts the commits that began by `now`.
  void Advance(double now);
  // The last revision whose commit had ended by `time`.
  uint64_t CommittedAt(double time) const;
  // When the commit of a revision ends or will end.
  double EndOf(uint64_t revision) const;
  uint64_t commits() const { return ends_.size() - 1; }

 private:
  struct End {
    double time;
    uint64_t revision;
  };

  void Start(double now);

  const double duration_;
  double busy_until_ = 0;
  uint64_t pending_ = 0;
  std::vector<End> ends_;
};

// Whether each of the model's last rows updated.
class UpdateWindow {
 public:
  static constexpr size_t kRows = 1000;

  void Add(bool updated) {
    count_ += (updated ? 1 : 0) - (updates_[next_] ? 1 : 0);
    updates_[next_] = updated;
    next_ = (next_ + 1) % kRows;
  }
  double Rate() const { return static_cast<double>(count_) / kRows; }

 private:
  bool updates_[kRows] = {};
  size_t next_ = 0;
  int count_ = 0;
};

}  // namespace perceptrond::bench::fleet
