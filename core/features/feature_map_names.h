// Names of products: the factors' names in the order of their bytes with '*' between, "a*b", "a*a".
// A '*' or '\' within a factor's own name gets a '\' before it, in a product of one factor too, so
// that two products never share a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace perceptrond {

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

}  // namespace perceptrond
