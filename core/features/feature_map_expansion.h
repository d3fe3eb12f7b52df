// The interface of a feature map. One map a file; MakeExpansion lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/features/feature_map_names.h"
#include "core/features/feature_map_slots.h"
#include "core/features/feature_space.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

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
  virtual ValidationCode Expand(const Source& source, size_t max_features,
                                Mapped& target) const = 0;
};

// The map of a space that CheckFeatureMap finds no problem with; null for the identity. Made once a
// model: Fourier features may compute a table. O(1), or O(table).
std::shared_ptr<const Expansion> MakeExpansion(const FeatureSpace& space);

}  // namespace perceptrond
