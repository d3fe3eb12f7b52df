#include "core/features/feature_space.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/features/polynomial.h"
#include "core/features/products.h"

namespace perceptrond {
namespace {

using Problem = std::optional<MapProblem>;

Problem CheckPolynomial(const FeatureSpace& space) {
  const uint32_t degree = space.map.degree;
  if (degree < FeatureMap::kMinDegree || degree > FeatureMap::kMaxDegree) {
    return MapProblem{"degree", absl::StrCat(degree, " is not between ", FeatureMap::kMinDegree,
                                             " and ", FeatureMap::kMaxDegree)};
  }
  if (space.kind != FeatureSpace::Kind::kDense) return {};
  if (MonomialCount(space.size, space.map) > FeatureSpace::kMaxFeatures) {
    return MapProblem{"degree",
                      absl::StrCat("dimension ", space.size, " has more than ",
                                   FeatureSpace::kMaxFeatures, " monomials up to degree ", degree,
                                   "; a hashed space has room for those that occur")};
  }
  return {};
}

Problem CheckGroup(const std::string& group) {
  if (group.size() > FeatureMap::kMaxGroupBytes) {
    return MapProblem{"pairs", absl::StrCat("a group has at most ", FeatureMap::kMaxGroupBytes,
                                            " bytes, this has ", group.size())};
  }
  if (group.find(kGroupEnd) == std::string::npos) return {};
  return MapProblem{"pairs", absl::StrCat("\"", group, "\" holds a '", std::string(1, kGroupEnd),
                                          "', which ends a group's name")};
}

Problem CheckProducts(const FeatureSpace& space) {
  if (space.kind == FeatureSpace::Kind::kDense) {
    return MapProblem{"kind", "products of groups need names, which a dense space has not"};
  }
  if (space.text.has_value())
    return MapProblem{"kind", "products of groups need names, which texts do not have"};
  const std::vector<GroupPair>& pairs = space.map.pairs;
  if (pairs.empty() || pairs.size() > FeatureMap::kMaxPairs) {
    return MapProblem{"pairs",
                      absl::StrCat(pairs.size(), " pairs; give 1 to ", FeatureMap::kMaxPairs)};
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const GroupPair& pair : pairs) {
    for (const std::string& group : {pair.first, pair.second}) {
      if (Problem problem = CheckGroup(group)) return problem;
    }
    if (!seen.insert(std::minmax(pair.first, pair.second)).second) {
      return MapProblem{
          "pairs", absl::StrCat("\"", pair.first, "\" and \"", pair.second, "\" are paired twice")};
    }
  }
  return {};
}

Problem CheckFourier(const FeatureMap& map) {
  if (map.dimension < 1 || map.dimension > FeatureMap::kMaxFourierDimension) {
    return MapProblem{"dimension", absl::StrCat(map.dimension, " is not between 1 and ",
                                                FeatureMap::kMaxFourierDimension)};
  }
  if (!(map.gamma > 0) || !(map.gamma <= FeatureMap::kMaxGamma)) {
    return MapProblem{
        "gamma", absl::StrCat(map.gamma, " is not above 0 and at most ", FeatureMap::kMaxGamma)};
  }
  return {};
}

}  // namespace

std::optional<MapProblem> CheckFeatureMap(const FeatureSpace& space) {
  switch (space.map.kind) {
    case FeatureMap::Kind::kIdentity:
      return {};
    case FeatureMap::Kind::kPolynomial:
      return CheckPolynomial(space);
    case FeatureMap::Kind::kProducts:
      return CheckProducts(space);
    case FeatureMap::Kind::kFourier:
      return CheckFourier(space.map);
  }
  return MapProblem{"kind", "there is no such map"};
}

FeatureSpace FeatureSpace::mapped() const {
  if (map.kind == FeatureMap::Kind::kFourier) return {Kind::kDense, map.dimension};
  if (map.kind == FeatureMap::Kind::kPolynomial && kind == Kind::kDense) {
    return {Kind::kDense, static_cast<uint32_t>(MonomialCount(size, map))};
  }
  return {kind, size};
}

uint32_t FeatureSpace::initial_weights() const {
  const FeatureSpace weights = mapped();
  return weights.kind == Kind::kNamed ? 1 : weights.size;
}

}  // namespace perceptrond
