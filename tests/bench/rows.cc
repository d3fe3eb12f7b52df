#include "tests/bench/rows.h"

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/load/synthetic_rows.h"
#include "core/features/names.h"

namespace perceptrond::bench {

Rows SparseRows(double mistakes, bool tiny) {
  client::SyntheticRowsOptions options;
  options.size = kHashedWeights;
  options.features = kFeatures;
  options.mistakes = mistakes;
  options.parts = tiny ? 8 : 1;
  client::SyntheticRows source(options);
  Rows rows;
  for (size_t i = 0; i < 2 * client::SyntheticRows::Count(options); ++i) {
    const client::Row& row = source.Next();
    rows.Add(row.indices, row.values, row.label);
  }
  return rows;
}

std::string FeatureName(uint32_t index) { return absl::StrCat("word", index); }

Rows InSlots(const Rows& words, uint32_t slots) {
  Rows rows;
  const Batch batch = words.batch();
  for (size_t i = 0; i < batch.rows(); ++i) {
    std::set<uint32_t> row;
    for (size_t f = 0; f < batch.row(i).size; ++f)
      row.insert(NameSlot(FeatureName(batch.row(i).indices[f]), slots));
    rows.Add({row.begin(), row.end()}, std::vector<float>(row.size(), 1), batch.labels[i]);
  }
  return rows;
}

std::vector<uint32_t> SlotsOfWords(uint32_t words, uint32_t slots) {
  std::vector<uint32_t> result;
  for (uint32_t word = 0; word < words; ++word)
    result.push_back(NameSlot(FeatureName(word), slots));
  return result;
}

Rows ZipfRows(size_t count, uint32_t names, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> frequencies(names);
  for (uint32_t i = 0; i < names; ++i) frequencies[i] = 1.0 / (1 + i);
  std::discrete_distribution<uint32_t> word(frequencies.begin(), frequencies.end());
  std::normal_distribution<double> normal;
  std::vector<double> separator(names);
  for (double& s : separator) s = normal(random);
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    std::set<uint32_t> row;
    while (row.size() < kFeatures) row.insert(word(random));
    double score = 0;
    for (const uint32_t index : row) score += separator[index];
    rows.Add({row.begin(), row.end()}, std::vector<float>(row.size(), 1), score > 0 ? 1 : -1);
  }
  return rows;
}

}  // namespace perceptrond::bench
