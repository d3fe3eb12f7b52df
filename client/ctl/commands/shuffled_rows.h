// The rows of an input in memory, for passes that each have an order of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/ctl/input.h"
#include "client/ctl/input_thread.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

// Threads: one.
class ShuffledRows {
 public:
  // What rows may take together, approximately.
  static constexpr size_t kMostBytes = size_t{2} << 30;

  explicit ShuffledRows(uint64_t seed, size_t most_bytes = kMostBytes)
      : seed_(seed), most_bytes_(most_bytes) {}

  // Adds what the input has. Adds malformed lines to `row_errors`, which says whether they end it.
  Outcome Read(Input* input, RowErrors* row_errors);
  // Adds a copy. False: there is no room for it.
  bool Add(const InputRow& row);
  // Puts all rows in the order of a pass: any is equally likely, and the same seed, pass and rows give
  // the same one on every machine. O(rows).
  void Shuffle(int64_t pass);

  size_t size() const { return rows_.size(); }
  // Row i of the order; of that in which they were added before the first Shuffle.
  const InputRow& operator[](size_t i) const { return rows_[order_[i]]; }

 private:
  const uint64_t seed_;
  const size_t most_bytes_;
  size_t bytes_ = 0;
  std::vector<InputRow> rows_;
  std::vector<size_t> order_;
};

}  // namespace perceptrond::client
