// Inner products of sparse rows with each other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond {

// A row by ascending index: made once, to be multiplied with many. Copies only a row that does not
// ascend, as in a space of named weights. The row must outlive it. Any thread may read it.
class SortedRow {
 public:
  // O(row.size); O(row.size log row.size) if it does not ascend.
  explicit SortedRow(const Row& row);
  SortedRow(const SortedRow&) = delete;
  SortedRow& operator=(const SortedRow&) = delete;

  const Row& row() const { return row_; }

 private:
  Row row_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

// x . z, in float64, summed one after the other by ascending index: the same bits for dense and
// sparse rows, and for zeros written or left out. z is sparse and strictly ascends; within a dense
// x. O(x.size + z.size); O(z.size) for a dense x.
double Dot(const SortedRow& x, const Row& z);

}  // namespace perceptrond
