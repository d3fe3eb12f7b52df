// What a mapped row's features are called: for explanations, so not on the path of learning.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/features/mapper.h"
#include "core/features/polynomial.h"

namespace perceptrond {
namespace {

std::string ProductName(uint32_t index, const FeatureSpace& space) {
  return absl::StrJoin(MonomialFactors(index, space.size, space.map), std::string(1, kTimes));
}

}  // namespace

void Mapper::Parts(size_t i, const FeatureSpace& space, std::vector<FeaturePart>& parts) {
  parts.clear();
  if (expansion_ == nullptr) return PartsAsSent(batch_.row(i), parts);
  const bool products =
      kind_ == FeatureSpace::Kind::kDense && space.map.kind == FeatureMap::Kind::kPolynomial;
  const Row row = Map(i);
  for (size_t j = 0; j < row.size; ++j) {
    FeaturePart& part = parts.emplace_back();
    part.index = row.index(j);
    part.value = row.value(j);
    if (mapped_kind_ == FeatureSpace::Kind::kNamed) part.name = std::string(mapped_.names[j]);
    if (products) part.name = ProductName(part.index, space);
  }
}

void Mapper::PartsAsSent(const Row& row, std::vector<FeaturePart>& parts) const {
  const bool named = !batch_.names.empty();
  for (size_t j = 0; j < row.size; ++j) {
    FeaturePart& part = parts.emplace_back();
    part.index = named ? name_indices_[row.index(j)] : row.index(j);
    part.value = row.value(j);
    if (named) part.name = std::string(batch_.names[row.index(j)]);
  }
}

}  // namespace perceptrond
