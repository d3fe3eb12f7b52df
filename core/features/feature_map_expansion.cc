#include "core/features/feature_map_expansion.h"

#include "core/features/fourier.h"
#include "core/features/polynomial.h"
#include "core/features/products.h"

namespace perceptrond {

ValidationCode CheckExtent(const Extent& extent, size_t max_features) {
  return extent.features > max_features || extent.name_bytes > kMaxRowNameBytes
             ? ValidationCode::kTooManyFeatures
             : ValidationCode::kNone;
}

std::shared_ptr<const Expansion> MakeExpansion(const FeatureSpace& space) {
  switch (space.map.kind) {
    case FeatureMap::Kind::kIdentity:
      break;
    case FeatureMap::Kind::kPolynomial:
      return std::make_shared<Polynomial>(space);
    case FeatureMap::Kind::kProducts:
      return std::make_shared<Products>(space);
    case FeatureMap::Kind::kFourier:
      return std::make_shared<Fourier>(space);
  }
  return nullptr;
}

}  // namespace perceptrond
