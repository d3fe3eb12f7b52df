// The rows that a learner keeps besides its weights or instead of them: a queue in columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond {

// Row i is the i-th oldest. Each row has a coefficient, whose meaning is the learner's. Rows are
// stored with ascending indices and without zeros, so that an example is the same row in whatever
// form it came. A plain value; not thread-safe.
class RowStore {
 public:
  size_t size() const { return coefficients_.size() - first_; }
  bool empty() const { return size() == 0; }
  // Holds until the next change. O(1).
  Row row(size_t i) const;
  double coefficient(size_t i) const { return coefficients_[first_ + i]; }
  // Of all rows. O(1).
  size_t features() const { return indices_.size() - Begin(first_); }

  // Adds the newest row. An index may occur twice only with values of zero. O(row.size log
  // row.size); O(row.size) if its indices ascend.
  void Push(const Row& row, double coefficient);
  // Removes the oldest row. Amortized O(its size).
  void Pop();
  // Multiplies every coefficient. O(size()).
  void Scale(double factor);

  // Approximate. O(1).
  size_t memory_bytes() const;
  // Every value and coefficient is a finite number, every index below `dimension`. O(features).
  bool IsSound(size_t dimension) const;

 private:
  // Where row i, removed ones included, begins in the columns.
  size_t Begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

  // Rows below first_ are removed; their columns are erased once they are the greater part.
  size_t first_ = 0;
  std::vector<size_t> ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<double> coefficients_;
};

}  // namespace perceptrond
