// Synthetic examples for a load: a given number of features at random indices, and a given share of
// mistakes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "client/row.h"

namespace perceptrond::client {

struct SyntheticRowsOptions {
  RowKind kind = RowKind::kSparse;
  // The dimension; for kNamed the number of names, "f0", "f1", ..., of which the first are the most
  // frequent, about by Zipf's law.
  uint32_t size = 1U << 20;
  // Non-zero features of an example, at most `size`. Ignored for kDense, where all are non-zero.
  uint32_t features = 75;
  // True: the labels are -1 and +1; false: no labels.
  bool labels = true;
  // Share of examples, 0 to 1, whose label flips in every round, so that no model learns them.
  // Sparse and named ones have features of their own, taken from one sixteenth of `size`; while
  // these suffice, a model without bias errs on all of them and on no others. Dense ones disturb
  // the others.
  double mistakes = 0;
  // Several streams on one model: the index and the number of streams. Each has examples of its
  // own.
  uint32_t part = 0;
  uint32_t parts = 1;
  uint32_t seed = 1;
};

// Repeats the same few thousand examples in rounds. Streams on one model share that number, with at
// least 16 each. All streams together have at most as many examples as a quarter of the dimension
// (but at least 64), so that a model can learn all of them except the mistakes.
//
// Threads: one at a time.
class SyntheticRows {
 public:
  explicit SyntheticRows(const SyntheticRowsOptions& options);
  // The number of examples in a round of one stream, and the bytes of one.
  static size_t Count(const SyntheticRowsOptions& options);
  static size_t BytesOfOne(const SyntheticRowsOptions& options);
  // The next example; valid until the next call.
  const Row& Next();

 private:
  struct Entry {
    Row row;
    bool flips = false;
  };

  Row Make(bool flips, std::mt19937& random);
  // The indices of an example, ascending; those of names in any order.
  std::vector<uint32_t> Indices(bool flips, std::mt19937& random);

  const SyntheticRowsOptions options_;
  // The next free feature among those of the flipping examples.
  uint32_t own_ = 0;
  std::vector<Entry> rows_;
  size_t next_ = 0;
};

}  // namespace perceptrond::client
