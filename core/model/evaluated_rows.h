// Rows of a batch that lie in the space of the weights, checked and evaluated some at a time, so
// that their weights are fetched from memory together (Learner::EvaluateRows).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/learner/learner.h"
#include "core/vector/row.h"

namespace perceptrond {

// A run of evaluated rows; empty at first. The batch must outlive it. Not thread-safe.
class EvaluatedRows {
 public:
  // The batch has labels, one a row, of any value. Not for several classes.
  EvaluatedRows(const Batch& batch, size_t max_features)
      : batch_(batch), max_features_(max_features) {}

  // Evaluates the rows from `first` on, at most `most`.
  void Evaluate(const Learner& learner, size_t first, size_t most) {
    begin_ = first;
    end_ = std::min(batch_.rows(), first + most);
    const size_t count = end_ - begin_;
    if (rows_.size() < count) rows_.resize(count);
    learner.EvaluateRows(batch_, first, max_features_, std::span(rows_).first(count));
  }
  void Clear() { end_ = begin_; }

  // The row after the last.
  size_t end() const { return end_; }
  bool Has(size_t row) const { return row >= begin_ && row < end_; }
  const EvaluatedRow& operator[](size_t row) const { return rows_[row - begin_]; }

 private:
  const Batch& batch_;
  const size_t max_features_;
  std::vector<EvaluatedRow> rows_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace perceptrond
