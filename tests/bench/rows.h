// The examples that the benchmarks send, made once from a fixed seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/columns.h"

namespace perceptrond::bench {

using Rows = testing::Columns;

inline constexpr size_t kFeatures = 75;
inline constexpr int kHashedBits = 20;
inline constexpr uint32_t kHashedWeights = 1U << kHashedBits;

// Two rounds of the load generator's rows: kFeatures random places among kHashedWeights, far more
// than rows, so that a perceptron separates them after a few passes. The labels of a share of
// `mistakes` flip with each round: without an offset a perceptron errs on exactly those rows,
// whenever they come, once it has learned the others.
Rows SparseRows(double mistakes, bool tiny);

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

}  // namespace perceptrond::bench
