// Examples made up for a load: as many features as asked for, at random places, and as many
// mistakes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "client/row.h"

namespace perceptrond::client {

struct SyntheticRowsOptions {
  RowKind kind = RowKind::kSparse;
  // The dimension; of kNamed: how many names there are, "f0" and so on.
  uint32_t size = 1U << 20;
  // Of an example: features that are not 0, at most `size`. Ignored for kDense, which has them all.
  uint32_t features = 75;
  // Labels -1 and +1, or without.
  bool labels = true;
  // The share of examples whose label is turned each time they come round, so that no model learns
  // them. Sparse and named ones have features of their own, from a sixteenth of `size`: as far as
  // that suffices, a model without an offset errs on all of them and on no others. Of a dense kind
  // each of them disturbs the rest.
  double mistakes = 0;
  // Of streams that load one model at once: which this is. Each has its part of the examples and of
  // those features.
  uint32_t part = 0;
  uint32_t parts = 1;
  // The share of examples whose label is one that no model of two labels has: the server refuses
  // them, and them alone.
  double refused = 0;
  uint32_t seed = 1;
};

// The same few thousand examples round and round; streams that load one model share that number,
// but have at least 16 each. All together are at most a quarter of the dimensions, or 64, so that a
// model can learn all but the mistakes.
//
// Threads: one at a time.
class SyntheticRows {
 public:
  explicit SyntheticRows(const SyntheticRowsOptions& options);
  // How many such examples there are, and the memory that one takes.
  static size_t Count(const SyntheticRowsOptions& options);
  static size_t BytesOfOne(const SyntheticRowsOptions& options);
  // Valid until the next call.
  const Row& Next();

 private:
  struct Made {
    Row row;
    bool turns = false;
  };

  Row Make(bool turns, std::mt19937& random);
  // Ascending.
  std::vector<uint32_t> Places(bool turns, std::mt19937& random);

  const SyntheticRowsOptions options_;
  // Of the features that belong to examples which turn: the next that none has yet.
  uint32_t own_ = 0;
  std::vector<Made> rows_;
  size_t next_ = 0;
};

}  // namespace perceptrond::client
