// From a text to a row of a hashed space: its n-grams of words and characters by the hashes of their
// names, with their values. perceptron.v1.FeatureSpace.Text has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/features/feature_space.h"
#include "core/features/words.h"
#include "core/vector/check.h"
#include "core/vector/name.h"

namespace perceptrond {

// The most n-grams of the texts of one batch: a byte may be in 55 n-grams.
inline constexpr size_t kMaxBatchGrams = 1 << 23;

// An n-gram of a text: its slot, and its value in the text's row, where the values of n-grams of one
// slot are added.
struct TextFeature {
  // Tells it from the text's others.
  uint64_t key = 0;
  uint32_t slot = 0;
  float value = 0;
};

// Keeps its memory from text to text. Not thread-safe.
class TextReader {
 public:
  // Appends the text's row to `indices`, which strictly ascend, and `values`: with
  // options.inverse_document_frequency before it is scaled. kBadText, or
  // kTooManyFeatures for more than `most` n-grams, repeated ones included: nothing is appended.
  // O(n log n) for n n-grams. Asks KeepGoing (core/sync/cancellation.h): once that returned false
  // the row is any row.
  ValidationCode Read(absl::string_view text, const TextOptions& options, uint32_t slots,
                      size_t most, std::vector<uint32_t>& indices, std::vector<float>& values);
  // Calls on_feature for each n-gram of the text that Read read last, by slot. `options` and `slots`
  // are Read's. Asks KeepGoing.
  void ForEachFeature(const TextOptions& options, uint32_t slots,
                      absl::FunctionRef<void(const TextFeature&)> on_feature) const;
  // Fills in the names of those n-grams whose keys are in `names`. Asks KeepGoing.
  void FindNames(const TextOptions& options, uint32_t slots,
                 absl::flat_hash_map<uint64_t, std::string>& names);
  // The n-grams that Read counted, repeated ones included.
  size_t grams() const { return grams_; }

 private:
  // Calls on_gram(name) for each n-gram.
  template <typename OnGram>
  void ForEachGram(const TextOptions& options, const OnGram& on_gram);
  // How many n-grams there are.
  size_t CountGrams(const TextOptions& options) const;
  void JoinWords();
  // The position after the last key that equals key i.
  size_t EndOfRun(size_t i) const;

  TextSplitter splitter_;
  size_t grams_ = 0;
  // What values were divided by.
  double norm_ = 1;
  // The words with a space between them, and where each ends.
  std::string words_;
  std::vector<uint32_t> word_ends_;
  std::string characters_;
  std::vector<uint32_t> character_ends_;
  // The n-grams' hashes with the bits of the slot in front, ascending.
  std::vector<uint64_t> keys_;
  // By slot, before the norm.
  std::vector<std::pair<uint32_t, double>> sums_;
  std::string name_;
};

// Describes the error that Read found: `field` is "text".
ValidationError DescribeText(absl::string_view text, ValidationCode code);

}  // namespace perceptrond
