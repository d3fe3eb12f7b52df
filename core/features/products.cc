#include "core/features/products.h"

#include <algorithm>
#include <array>

#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

// Their products are more than every limit.
constexpr uint64_t kManyFeatures = uint64_t{1} << 30;

float Product(const Row& row, uint32_t a, uint32_t b) {
  return static_cast<float>(static_cast<double>(row.value(a)) * static_cast<double>(row.value(b)));
}

}  // namespace

absl::string_view GroupOf(absl::string_view name) {
  const size_t end = name.find(kGroupEnd);
  return end == absl::string_view::npos ? absl::string_view() : name.substr(0, end);
}

Products::Products(const FeatureSpace& space)
    : kind_(space.kind), size_(space.size), interactions_only_(space.map.interactions_only) {
  for (const GroupPair& pair : space.map.pairs) {
    groups_.push_back(pair.first);
    groups_.push_back(pair.second);
  }
  std::sort(groups_.begin(), groups_.end());
  groups_.erase(std::unique(groups_.begin(), groups_.end()), groups_.end());
  const auto number = [this](const std::string& group) {
    return static_cast<uint32_t>(std::lower_bound(groups_.begin(), groups_.end(), group) -
                                 groups_.begin());
  };
  // Sorted, so that the order they were listed in is irrelevant.
  for (const GroupPair& pair : space.map.pairs)
    pairs_.push_back(std::minmax({number(pair.first), number(pair.second)}));
  std::sort(pairs_.begin(), pairs_.end());
}

ValidationCode Products::Expand(const Source& source, size_t max_features, Mapped& target) const {
  FindMembers(source, target.members);
  target.extent = Measure(source, target.members);
  const ValidationCode code = CheckExtent(target.extent, max_features);
  if (code != ValidationCode::kNone) return code;
  if (kind_ == FeatureSpace::Kind::kHashed) {
    ExpandHashed(source, target);
  } else {
    ExpandNamed(source, target);
  }
  return ValidationCode::kNone;
}

MapCost Products::CostOf(uint64_t features, size_t max_features) const {
  // As if all features were of one group that is paired with itself.
  const uint64_t few = std::min(features, kManyFeatures);
  const uint64_t all = few + few * (few + 1) / 2;
  const uint64_t mapped = std::min<uint64_t>(all, std::max<uint64_t>(features, max_features));
  return {mapped * ProductWork(kind_), mapped};
}

void Products::FindMembers(const Source& source, std::vector<Member>& members) const {
  members.clear();
  for (uint32_t i = 0; i < source.row.size; ++i) {
    const absl::string_view group = GroupOf(source.names[source.row.index(i)]);
    const auto found = std::lower_bound(groups_.begin(), groups_.end(), group);
    if (found == groups_.end() || *found != group) continue;
    members.emplace_back(static_cast<uint32_t>(found - groups_.begin()), i);
  }
  std::sort(members.begin(), members.end());
}

std::span<const Products::Member> Products::MembersOf(uint32_t group,
                                                      const std::vector<Member>& members) const {
  return {std::lower_bound(members.begin(), members.end(), Member(group, 0)),
          std::lower_bound(members.begin(), members.end(), Member(group + 1, 0))};
}

Extent Products::Measure(const Source& source, const std::vector<Member>& members) const {
  const auto bytes_of = [&](uint32_t i) { return FactorBytes(source.names[source.row.index(i)]); };
  Extent extent{source.row.size};
  if (kind_ == FeatureSpace::Kind::kNamed) {
    for (uint32_t i = 0; i < source.row.size; ++i) extent.name_bytes += bytes_of(i);
  }
  for (const auto& [first, second] : pairs_) {
    const std::span<const Member> ones = MembersOf(first, members);
    const std::span<const Member> others = MembersOf(second, members);
    const uint64_t n = ones.size();
    const bool same = first == second;
    const uint64_t products =
        !same ? n * others.size() : n * (interactions_only_ ? n - 1 : n + 1) / 2;
    extent.features += products;
    if (kind_ != FeatureSpace::Kind::kNamed) continue;
    // How often each feature stands in a product: with all others of its own group, and twice in
    // its square; or with all of the other group.
    const uint64_t times = !same ? others.size() : (interactions_only_ ? n - 1 : n + 1);
    for (const Member& one : ones) extent.name_bytes += times * bytes_of(one.second);
    if (!same) {
      for (const Member& other : others) extent.name_bytes += n * bytes_of(other.second);
    }
    extent.name_bytes += products;
  }
  return extent;
}

template <typename Emit>
void Products::ForEachProduct(const std::vector<Member>& members, Emit emit) const {
  for (const auto& [first, second] : pairs_) {
    const std::span<const Member> ones = MembersOf(first, members);
    const std::span<const Member> others = MembersOf(second, members);
    for (size_t i = 0; i < ones.size(); ++i) {
      if (!KeepGoing(others.size() * ProductWork(kind_))) return;
      const size_t begin = first != second ? 0 : (interactions_only_ ? i + 1 : i);
      for (size_t j = begin; j < others.size(); ++j) {
        const auto [low, high] = std::minmax(ones[i].second, others[j].second);
        emit(low, high);
      }
    }
  }
}

void Products::ExpandHashed(const Source& source, Mapped& target) const {
  const Row& row = source.row;
  target.slots.Clear();
  target.slots.Reserve(target.extent.features);
  for (uint32_t i = 0; i < row.size; ++i)
    target.slots.Add(source.slots[row.index(i)], row.value(i));
  ForEachProduct(target.members, [&](uint32_t a, uint32_t b) {
    std::array<uint32_t, 2> slots = {source.slots[row.index(a)], source.slots[row.index(b)]};
    std::sort(slots.begin(), slots.end());
    target.slots.Add(ProductSlot(slots, size_), Product(row, a, b));
  });
  target.row = target.slots.Sum();
}

void Products::ExpandNamed(const Source& source, Mapped& target) const {
  const Row& row = source.row;
  target.names.Clear();
  target.names.Reserve(target.extent.features, target.extent.name_bytes);
  target.values.clear();
  target.values.reserve(target.extent.features);
  for (uint32_t i = 0; i < row.size; ++i) {
    const uint32_t index = row.index(i);
    target.names.Add({&index, 1}, source.names);
    target.values.push_back(row.value(i));
  }
  ForEachProduct(target.members, [&](uint32_t a, uint32_t b) {
    const std::array<uint32_t, 2> indices = {row.index(a), row.index(b)};
    target.names.Add(indices, source.names);
    target.values.push_back(Product(row, a, b));
  });
  target.row = Row{kNoIndices, target.values.data(), target.values.size()};
}

}  // namespace perceptrond
