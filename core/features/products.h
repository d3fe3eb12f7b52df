// Products of named groups.
//
//   Phi(x)    the features themselves, then for each pair of groups (g, h) the product of every
//             feature of g with every feature of h; for a pair (g, g) each two features once, and
//             each with itself unless interactions_only
//   groups    a feature's group is its name up to the first '^' ("" without one)
//   count     features + sum over pairs of |g| |h|; for (g, g) of |g| (|g| + 1) / 2, or
//             |g| (|g| - 1) / 2
//   source    Vowpal Wabbit's --quadratic (-q); the construction is a polynomial kernel's,
//             restricted to the pairs that are asked for
//
// Where a product goes:
//   hashed    to ProductSlot of its factors' slots; a feature keeps its slot
//   named     by name: core/features/expansion.h; a feature keeps its name, '*' and '\'
//             escaped
//
// A product is computed in float64 and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/expansion.h"

namespace perceptrond {

inline constexpr char kGroupEnd = '^';

// The group of a feature. O(name).
absl::string_view GroupOf(absl::string_view name);

// O(features mapped to + features log features), in a hashed space times their logarithm.
class Products final : public Expansion {
 public:
  explicit Products(const FeatureSpace& space);

  // Slots do not say which group they are of.
  bool by_name() const override { return true; }
  ValidationCode Expand(const Source& source, size_t max_features, Mapped& target) const override;
  MapCost CostOf(uint64_t features, size_t max_features) const override;

 private:
  // A feature that has a group: the group's number, and the feature's position in the row.
  using Member = std::pair<uint32_t, uint32_t>;

  // Members of listed groups, by group and position.
  void FindMembers(const Source& source, std::vector<Member>& members) const;
  std::span<const Member> MembersOf(uint32_t group, const std::vector<Member>& members) const;
  Extent Measure(const Source& source, const std::vector<Member>& members) const;
  // Calls emit with the positions of every product's factors, the smaller first, until KeepGoing
  // returns false.
  template <typename Emit>
  void ForEachProduct(const std::vector<Member>& members, Emit emit) const;
  void ExpandHashed(const Source& source, Mapped& target) const;
  void ExpandNamed(const Source& source, Mapped& target) const;

  const FeatureSpace::Kind kind_;
  const uint32_t size_;
  const bool interactions_only_;
  // Ascending; a group's number is its position.
  std::vector<std::string> groups_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
};

}  // namespace perceptrond
