#include "core/features/feature_space.h"

#include "core/features/polynomial.h"

namespace perceptrond {

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
