// The interface of a feature map, and what maps make their rows in: names of products, and slots of
// a hashed space. One map a file; MakeExpansion lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/features/feature_space.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

// Names of products: the factors' names in the order of their bytes with '*' between, "a*b", "a*a".
// A '*' or '\' within a factor's own name gets a '\' before it, in a product of one factor too, so
// that two products never share a name.
inline constexpr char kTimes = '*';
inline constexpr char kEscape = '\\';

// How many bytes the name takes as a factor. O(name).
size_t FactorBytes(absl::string_view name);

// The names of one row's products, in the order they came. Keeps its memory. Not thread-safe.
class ProductNames {
 public:
  void Clear();
  void Reserve(size_t products, size_t bytes);
  // Factors are positions among `names`, which ascend by their bytes; so do the positions.
  void Add(std::span<const uint32_t> factors, std::span<const absl::string_view> names);

  size_t size() const { return ends_.size(); }
  // The view holds until the next call that changes something.
  absl::string_view operator[](size_t i) const;

 private:
  void AppendFactor(absl::string_view name);

  // All names, one after the other, and where each ends.
  std::string bytes_;
  std::vector<size_t> ends_;
};

// The slot of a product among `slots`, a power of two: the low bits of XXH3-64 over its factors'
// own slots, which ascend, each as four bytes, the least first. So a product finds its slot alike
// from names and from indices. At least two factors. O(factors).
uint32_t ProductSlot(std::span<const uint32_t> factors, uint32_t slots);

// Gathers features by slot, in any order; what shares a slot adds up. Keeps its memory. Not
// thread-safe.
class SlotSum {
 public:
  void Clear() {
    slots_.clear();
    added_.clear();
  }
  void Reserve(size_t features) {
    slots_.reserve(features);
    added_.reserve(features);
  }
  void Add(uint32_t slot, float value) {
    slots_.push_back(slot);
    added_.push_back(value);
  }
  // What was added, slots ascending. Values of one slot are summed in the order they were added; a
  // sum may leave float32. The view holds until the next call. O(n^2) for up to 256, many at once;
  // else O(n log n).
  Row Sum();

 private:
  // Appends, or adds to the last of the same slot.
  void Append(uint32_t slot, float value);
  void SortFew();
  void SortMany();

  std::vector<uint32_t> slots_;
  std::vector<float> added_;
  // Of SortFew: how many slots are less than each, and by this rank the position of the first of
  // each slot and of the next of it.
  std::vector<uint32_t> ranks_;
  std::vector<uint32_t> first_;
  std::vector<uint32_t> next_;
  // Of SortMany: slots above positions.
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

// The most bytes that the names of one mapped row may take: one update may have to learn them all.
inline constexpr uint64_t kMaxRowNameBytes = 1 << 24;

// One row before the map, well formed (CheckRow). A view.
struct Source {
  // Its indices are those of a dense space, or the slots of a hashed one; with names, positions
  // among them.
  Row row;
  // The batch's names, strictly ascending by their bytes. In a named space, and for maps that use
  // names.
  std::span<const absl::string_view> names;
  // In a hashed space, with names: the slot of each.
  std::span<const uint32_t> slots;
};

// What a row maps to, found out without mapping it. Saturates.
struct Extent {
  uint64_t features = 0;
  // In a named space: of all names of its features.
  uint64_t name_bytes = 0;
};

// kTooManyFeatures for an extent above max_features or kMaxRowNameBytes.
ValidationCode CheckExtent(const Extent& extent, size_t max_features);

// One row after the map, in memory that is kept from row to row of one Expansion. Not thread-safe.
struct Mapped {
  // Found before a feature is mapped; also that of a row with too many.
  Extent extent;
  // The row; in a named space without indices, and names are as many as values.
  Row row;
  ProductNames names;

  // Where the row lies, for maps to fill.
  std::vector<uint32_t> indices;
  std::vector<float> values;
  SlotSum slots;
  // Room for a map to work in.
  std::vector<std::pair<uint32_t, uint32_t>> members;
  std::vector<double> projections;
  std::vector<float> frequencies;
  absl::flat_hash_map<uint64_t, size_t> frequency_offsets;
};

// What a map takes for one row, found out from the number of its features alone. Estimates, from
// above; saturates.
struct MapCost {
  // Multiply-adds that take as long.
  uint64_t work = 0;
  // Features of the mapped row; 0 for a row that Expand refuses.
  uint64_t features = 0;
};

// How many multiply-adds take as long as making one product and finding its weight, by the space
// that it is made in.
uint64_t ProductWork(FeatureSpace::Kind kind);

// A feature map made ready for one space.
//
// Thread contract: immutable; any number of threads may use one at once, each with its own Mapped.
//
// Contract of every map (tests/core/features/expansion_test.cc runs over all):
//   - what a row maps to depends on the row's features and on the settings only, not on the batch
//     it came in, nor on the order its names were sent in;
//   - indices strictly ascend below mapped().size; in a named space no name stands twice;
//   - extent is right (in a hashed space before slots are summed), and is checked before memory is
//     spent on features.
class Expansion {
 public:
  virtual ~Expansion() = default;

  // Whether it takes rows by name where it could have them by slot.
  virtual bool by_name() const { return false; }
  // Maps source.row into target. kTooManyFeatures, and target.row is undefined, if it would have
  // more than max_features or more than kMaxRowNameBytes of names. Values may be infinite.
  //
  // Asks KeepGoing (core/sync/cancellation.h): once that returned false, target.row is any row.
  virtual ValidationCode Expand(const Source& source, size_t max_features,
                                Mapped& target) const = 0;
  // What Expand takes for a row of `features` features. O(1).
  virtual MapCost CostOf(uint64_t features, size_t max_features) const = 0;
  // What the first rows of a batch take besides, whose rows have `features` features in all and at
  // most `distinct` different ones: what is computed once for each of them. O(1).
  virtual uint64_t CostOfDistinct(uint64_t /*features*/, uint64_t /*distinct*/) const { return 0; }
};

// The map of a space that CheckFeatureMap finds no problem with; null for the identity. Made once a
// model: Fourier features may compute a table. O(1), or O(table).
std::shared_ptr<const Expansion> MakeExpansion(const FeatureSpace& space);

}  // namespace perceptrond
