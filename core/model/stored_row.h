// An example that a model keeps: a copy of its own, in the space of the weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/names.h"
#include "core/vector/row.h"

namespace perceptrond {

// An example as the learner sees it. Views arrays of others, which must outlive it.
struct SeenExample {
  Row row;
  int32_t label = 0;
  // In a named space: the names of the features whose index is 0 (they have no weight yet), in
  // order.
  std::span<const absl::string_view> unknown;
};

// Thread contract: immutable once it is shared, and then safe for any number of threads.
struct StoredRow {
  StoredRow() = default;
  explicit StoredRow(const SeenExample& seen);

  // A view, valid as long as this lives.
  Row row() const;
  // The same with label and unknown names; `names` holds the views of the names.
  SeenExample Seen(std::vector<absl::string_view>& names) const;
  // Approximate.
  size_t memory_bytes() const;

  bool dense = false;
  // Empty if dense.
  std::vector<uint32_t> indices;
  std::vector<float> values;
  int32_t label = 0;
  // Names that had no weight when the example came. They may have one by now.
  std::vector<std::string> unknown;
};

using StoredRowPtr = std::shared_ptr<const StoredRow>;
// A row of the sample, by HashOf.
using SampledRow = std::pair<uint64_t, StoredRowPtr>;

// XXH3-64 of label, features and values. In a named space features count by their names, so that
// the hash is the same before and after they get weights. O(row.size).
uint64_t HashOf(const SeenExample& seen, const Dictionary& names);
// Whether label, features and values are equal to the bit. O(row.size).
bool SameExample(const SeenExample& a, const SeenExample& b, const Dictionary& names);

}  // namespace perceptrond
