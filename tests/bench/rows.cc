#include "tests/bench/rows.h"

#include <algorithm>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"

namespace perceptrond::bench {
namespace {

// One index in this many belongs to the rows that err.
constexpr uint32_t kShare = 16;

float Value(std::mt19937& random) {
  return std::uniform_real_distribution<float>(0.5F, 1.5F)(random);
}

void AddRow(Rows& rows, std::vector<uint32_t> indices, int32_t label, std::mt19937& random) {
  std::sort(indices.begin(), indices.end());
  rows.indices.insert(rows.indices.end(), indices.begin(), indices.end());
  for (size_t i = 0; i < indices.size(); ++i) rows.values.push_back(Value(random));
  rows.row_ends.push_back(static_cast<uint32_t>(rows.indices.size()));
  rows.labels.push_back(label);
}

// Indices of the rows that cause no mistake.
std::vector<uint32_t> RandomIndices(uint32_t size, std::mt19937& random) {
  std::set<uint32_t> indices;
  while (indices.size() < kFeatures) {
    const uint32_t index = random() % size;
    if (index % kShare != 0) indices.insert(index);
  }
  return {indices.begin(), indices.end()};
}

// Gives out the other indices, none twice until all are used.
class OwnIndices {
 public:
  OwnIndices(uint32_t size, std::mt19937& random) : indices_(size / kShare) {
    for (uint32_t i = 0; i < indices_.size(); ++i) indices_[i] = i * kShare;
    std::shuffle(indices_.begin(), indices_.end(), random);
  }
  std::vector<uint32_t> Next() {
    if (next_ + kFeatures > indices_.size()) next_ = 0;
    const auto begin = indices_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ += kFeatures;
    return {begin, begin + kFeatures};
  }

 private:
  std::vector<uint32_t> indices_;
  size_t next_ = 0;
};

int32_t RandomLabel(std::mt19937& random) { return random() % 2 == 0 ? 1 : -1; }

}  // namespace

std::string FeatureName(uint32_t index) { return absl::StrCat("word", index); }

Rows InSlots(const Rows& words, uint32_t slots) {
  Rows rows;
  rows.labels = words.labels;
  const Batch batch = words.batch();
  std::vector<uint32_t> row;
  for (size_t i = 0; i < words.size(); ++i) {
    row.clear();
    for (size_t f = 0; f < batch.row(i).size; ++f)
      row.push_back(NameSlot(FeatureName(batch.row(i).indices[f]), slots));
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    rows.indices.insert(rows.indices.end(), row.begin(), row.end());
    rows.row_ends.push_back(static_cast<uint32_t>(rows.indices.size()));
  }
  rows.values.assign(rows.indices.size(), 1.0F);
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
    rows.indices.insert(rows.indices.end(), row.begin(), row.end());
    rows.values.insert(rows.values.end(), row.size(), 1.0F);
    rows.row_ends.push_back(static_cast<uint32_t>(rows.indices.size()));
    rows.labels.push_back(score > 0 ? 1 : -1);
  }
  return rows;
}

Batch Rows::batch() const {
  Batch batch;
  batch.row_ends = row_ends;
  batch.indices = indices;
  batch.values = values;
  batch.labels = labels;
  return batch;
}

Rows Rows::Slice(size_t begin, size_t end) const {
  Rows slice;
  const Batch all = batch();
  for (size_t i = begin; i < std::min(end, size()); ++i) {
    const Row row = all.row(i);
    slice.values.insert(slice.values.end(), row.values, row.values + row.size);
    slice.labels.push_back(labels[i]);
    slice.indices.insert(slice.indices.end(), row.indices, row.indices + row.size);
    slice.row_ends.push_back(static_cast<uint32_t>(slice.indices.size()));
  }
  return slice;
}

Rows SparseRows(size_t count, uint32_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Rows rows;
  for (size_t i = 0; i < count; ++i)
    AddRow(rows, RandomIndices(size, random), RandomLabel(random), random);
  return rows;
}

Rows ErringRows(size_t count, uint32_t size, uint32_t seed) {
  std::mt19937 random(seed);
  OwnIndices own(size, random);
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    const bool errs = i % 10 == 0;
    AddRow(rows, errs ? own.Next() : RandomIndices(size, random), errs ? 1 : RandomLabel(random),
           random);
  }
  // The same rows follow once more, and those that err have the other label.
  const auto base = static_cast<uint32_t>(rows.indices.size());
  for (size_t i = 0; i < count; ++i) {
    rows.row_ends.push_back(base + rows.row_ends[i]);
    rows.labels.push_back(i % 10 == 0 ? -rows.labels[i] : rows.labels[i]);
  }
  for (uint32_t i = 0; i < base; ++i) {
    rows.indices.push_back(rows.indices[i]);
    rows.values.push_back(rows.values[i]);
  }
  return rows;
}

}  // namespace perceptrond::bench
