// An example that a model keeps: its own copy, as the feature map made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/dictionary.h"
#include "core/vector/row.h"

namespace perceptrond {

// An example as the learner sees it, where it lies. The arrays must outlive it.
struct SeenExample {
  Row row;
  int32_t label = 0;
  // In a named space: the names of the places whose index is 0, in their order.
  std::span<const absl::string_view> unknown;
};

// Never changes once it is shared: any thread may read it.
struct RetainedRow {
  RetainedRow() = default;
  explicit RetainedRow(const SeenExample& seen);

  // The view holds as long as this lives.
  Row row() const;
  SeenExample Seen(std::vector<absl::string_view>& names) const;
  // Approximately.
  size_t memory_bytes() const;

  bool dense = false;
  // Empty if dense.
  std::vector<uint32_t> indices;
  std::vector<float> values;
  int32_t label = 0;
  // Names that had no weight when it came: they may have one now.
  std::vector<std::string> unknown;
};

using RetainedRowPtr = std::shared_ptr<const RetainedRow>;

// XXH3-64 of the example: of its label, its features (in a named space their names, so that it is
// the same before and after they get weights) and its values. O(row.size).
uint64_t HashOf(const SeenExample& seen, const Dictionary& names);
// Whether both have the same label, features and values, to the bit. O(row.size).
bool SameExample(const SeenExample& a, const SeenExample& b, const Dictionary& names);

}  // namespace perceptrond
