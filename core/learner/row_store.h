// The rows that a learner keeps besides its weights or instead of them: a queue in columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/vector/row.h"
#include "core/vector/simd.h"

namespace perceptrond {

// Row i is the i-th oldest. Each row has a coefficient, whose meaning is the learner's. Rows are
// stored with ascending indices and without zeros, so that an example is the same row in whatever
// form it came. A plain value; not thread-safe.
class RowStore {
 public:
  // Rows that are multiplied together.
  struct Block {
    // From the row asked for to the block's last, at least 1.
    size_t rows = 0;
    // Not null: the rows as simd::Loops::block_dots takes them; the row asked for is row `first`.
    const float* columns = nullptr;
    size_t width = 0;
    size_t first = 0;
  };

  size_t size() const { return coefficients_.size() - first_; }
  bool empty() const { return size() == 0; }
  // Holds until the next change. O(1).
  Row row(size_t i) const;
  double coefficient(size_t i) const { return coefficients_[first_ + i]; }
  // `size()` of them.
  const double* coefficients() const { return coefficients_.data() + first_; }
  // Of all rows. O(1).
  size_t features() const { return features(0, size()); }
  // Of `count` rows from row i on. O(1).
  size_t features(size_t i, size_t count) const {
    return Begin(first_ + i + count) - Begin(first_ + i);
  }

  // Adds the newest row. An index may occur twice only with values of zero. O(row.size log
  // row.size); O(row.size) if its indices ascend.
  void Push(const Row& row, double coefficient);
  // Removes the oldest row. Amortized O(its size).
  void Pop();
  // Multiplies every coefficient. O(size()).
  void Scale(double factor);

  // From now on keeps rows also in blocks by columns, for products with many of them: dense ones,
  // that have at least half of their block's features, up to kWidestBlock. That takes at most 8
  // bytes a feature, as much again as the row; of the last block, while it is not complete, up to
  // 128 bytes for each of kNarrowBlock features. O(features).
  void KeepBlocks();
  // The block of row i; without KeepBlocks, each row is alone. Holds until the next change. O(1).
  Block block(size_t i) const;
  static constexpr size_t kWidestBlock = 8192;
  static constexpr size_t kNarrowBlock = 32;

  // Approximate. O(1).
  size_t memory_bytes() const;
  // Every value and coefficient is a finite number, every index below `dimension`. O(features).
  bool IsSound(size_t dimension) const;

 private:
  // Where row i, removed ones included, begins in the columns.
  size_t Begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

  // Adds row i, the last of its block so far, to the block's columns; leaves the block without
  // columns if its rows are not dense.
  void AddToBlock(size_t i);

  // Rows below first_ are removed; their columns are erased once they are the greater part.
  size_t first_ = 0;
  std::vector<size_t> ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<double> coefficients_;
  bool keeps_blocks_ = false;
  // Of the first block's rows, how many are removed.
  size_t removed_ = 0;
  // The blocks that have a row, by columns. Empty: not kept in columns.
  std::vector<std::vector<float>> blocks_;
  // Of the last block: the features that its rows reach to.
  size_t last_width_ = 0;
  size_t block_bytes_ = 0;
};

}  // namespace perceptrond
