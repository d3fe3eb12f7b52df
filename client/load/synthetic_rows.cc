#include "client/load/synthetic_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

namespace perceptrond::client {
namespace {

// Examples in one round of all streams; fewer dense ones, so that they take some megabytes.
constexpr size_t kRows = 4096;
constexpr size_t kLeastRows = 64;
constexpr size_t kLeastRowsOfAStream = 16;
constexpr size_t kMostValues = size_t{1} << 21;
// More random examples than twice the dimension are not separable (T. M. Cover, "Geometrical and
// statistical properties of systems of linear inequalities", 1965), and near that number learning
// takes long.
constexpr size_t kDimensionsPerRow = 4;
// One in kShare dimensions belongs to the flipping examples.
constexpr uint32_t kShare = 16;

size_t ValuesOf(const SyntheticRowsOptions& options) {
  return options.kind == RowKind::kDense ? options.size : options.features;
}

// True for a fraction `share` of all i, evenly spread.
bool IsOneOf(double share, size_t i) {
  const auto count = [share](size_t n) {
    return static_cast<uint64_t>(share * static_cast<double>(n));
  };
  return count(i + 1) > count(i);
}

// A uniformly drawn set of `count` numbers below `end`, ascending.
std::vector<uint32_t> SomeBelow(uint32_t end, uint32_t count, std::mt19937& random) {
  using Below = std::uniform_int_distribution<uint32_t>;
  // Drawing until all are distinct suits small sets; for large ones selection sampling looks at
  // each number once (D. E. Knuth, "The Art of Computer Programming", volume 2, algorithm 3.4.2 S).
  constexpr uint32_t kFew = 16;
  if (count < end / kFew) {
    std::set<uint32_t> drawn;
    while (drawn.size() < count) drawn.insert(Below(0, end - 1)(random));
    return {drawn.begin(), drawn.end()};
  }
  std::vector<uint32_t> chosen;
  chosen.reserve(count);
  for (uint32_t i = 0; chosen.size() < count; ++i) {
    if (Below(0, end - i - 1)(random) < count - chosen.size()) chosen.push_back(i);
  }
  return chosen;
}

// A set of `count` numbers below `end`, in any order, in which number i is about as frequent as
// 1 / (i + 1): the log-uniform law, which is Zipf's but for the first few numbers.
std::vector<uint32_t> FrequentBelow(uint32_t end, uint32_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> logarithm(0, std::log(static_cast<double>(end)));
  // A row of many names has rare and frequent ones alike.
  constexpr uint32_t kFew = 16;
  if (count >= end / kFew) return SomeBelow(end, count, random);
  std::vector<uint32_t> drawn;
  std::set<uint32_t> taken;
  while (drawn.size() < count) {
    const auto number = static_cast<uint32_t>(std::exp(logarithm(random))) - 1;
    if (number < end && taken.insert(number).second) drawn.push_back(number);
  }
  return drawn;
}

}  // namespace

SyntheticRows::SyntheticRows(const SyntheticRowsOptions& options) : options_(options) {
  const size_t rows = Count(options);
  const size_t before = rows * options.part;
  std::mt19937 random(options.seed);
  rows_.reserve(rows);
  for (size_t i = before; i < before + rows; ++i) {
    const bool flips = options.labels && IsOneOf(options.mistakes, i);
    rows_.push_back({Make(flips, random), flips});
  }
}

size_t SyntheticRows::Count(const SyntheticRowsOptions& options) {
  const size_t held = kMostValues / std::max<size_t>(ValuesOf(options), 1);
  const size_t learned = options.size / kDimensionsPerRow;
  const size_t all = std::clamp(std::min(held, learned), kLeastRows, kRows);
  return std::max(all / options.parts, kLeastRowsOfAStream);
}

size_t SyntheticRows::BytesOfOne(const SyntheticRowsOptions& options) {
  size_t bytes = sizeof(float);
  if (options.kind == RowKind::kSparse) bytes += sizeof(uint32_t);
  // The end offset of a name, and at most "f4294967295".
  if (options.kind == RowKind::kNamed) bytes += sizeof(size_t) + sizeof("f4294967295");
  return sizeof(Entry) + ValuesOf(options) * bytes;
}

Row SyntheticRows::Make(bool flips, std::mt19937& random) {
  Row row;
  row.kind = options_.kind;
  std::uniform_real_distribution<float> value(0.5F, 1.5F);
  if (options_.labels) row.label = random() % 2 == 0 ? 1 : -1;
  row.values.reserve(ValuesOf(options_));
  if (options_.kind == RowKind::kDense) {
    // Values of both signs, so that planes through the origin separate them.
    for (uint32_t i = 0; i < options_.size; ++i)
      row.values.push_back(random() % 2 == 0 ? value(random) : -value(random));
    return row;
  }
  for (const uint32_t index : Indices(flips, random)) {
    if (options_.kind == RowKind::kNamed) {
      row.AddName("f" + std::to_string(index));
    } else {
      row.indices.push_back(index);
    }
    row.values.push_back(value(random));
  }
  return row;
}

std::vector<uint32_t> SyntheticRows::Indices(bool flips, std::mt19937& random) {
  const uint32_t shared =
      options_.mistakes > 0 ? options_.size - options_.size / kShare : options_.size;
  const uint32_t part = (options_.size - shared) / options_.parts;
  if (flips && part >= options_.features) {
    if (own_ + options_.features > part) own_ = 0;
    std::vector<uint32_t> indices(options_.features);
    std::iota(indices.begin(), indices.end(), shared + options_.part * part + own_);
    own_ += options_.features;
    return indices;
  }
  const uint32_t count = std::min(options_.features, shared);
  return options_.kind == RowKind::kNamed ? FrequentBelow(shared, count, random)
                                          : SomeBelow(shared, count, random);
}

const Row& SyntheticRows::Next() {
  Entry& entry = rows_[next_];
  next_ = (next_ + 1) % rows_.size();
  if (entry.flips) entry.row.label = -entry.row.label;
  return entry.row;
}

}  // namespace perceptrond::client
