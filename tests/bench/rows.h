// The examples that the benchmarks send, made once from a fixed seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond::bench {

// Rows in columns, as core/vector/row.h reads them.
struct Rows {
  std::vector<uint32_t> row_ends;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  std::vector<int32_t> labels;

  size_t size() const { return labels.size(); }
  Batch batch() const;
  // Rows `begin` to `end` - 1, as rows of their own.
  Rows Slice(size_t begin, size_t end) const;
};

inline constexpr size_t kFeatures = 75;

// `count` rows of kFeatures random places below `size`, with random labels: far more dimensions
// than rows, so that a perceptron separates them after a few passes.
Rows SparseRows(size_t count, uint32_t size, uint32_t seed);

// The name of a feature in rows that are sent by name: "word17".
std::string FeatureName(uint32_t index);

// Rows of words by the slots that their names have among `slots`, a power of two. Of words that share
// a slot a row keeps one.
Rows InSlots(const Rows& words, uint32_t slots);
// The slot of each word's name.
std::vector<uint32_t> SlotsOfWords(uint32_t words, uint32_t slots);

// Words, as users send them: `count` rows of kFeatures different ones of `names` indices, drawn by
// Zipf's law (exponent 1, index 0 the most frequent), each with the value 1; a hidden separator
// gives the labels.
Rows ZipfRows(size_t count, uint32_t names, uint32_t seed);

// SparseRows twice over, for a stream that never converges: every tenth row has places of its own, and
// its label is +1 the first time and -1 the second. Without an offset a perceptron errs on
// exactly those rows, whenever they come, once it has learned the others. At most size / 120 rows.
Rows ErringRows(size_t count, uint32_t size, uint32_t seed);

}  // namespace perceptrond::bench
