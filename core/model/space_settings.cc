#include "core/model/space_settings.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/features/feature_space.h"
#include "core/model/error.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kMaxComponents = 1024;

absl::StatusOr<FeatureSpace> ReadInputSpace(const v1::FeatureSpace& space) {
  switch (space.space_case()) {
    case v1::FeatureSpace::kDense:
      if (space.dense().dimension() < 1 || space.dense().dimension() > FeatureSpace::kMaxFeatures) {
        return InvalidSetting("model.feature_space.dense.dimension",
                              absl::StrCat(space.dense().dimension(), " is not between 1 and ",
                                           FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense, space.dense().dimension()};
    case v1::FeatureSpace::kHashed:
      if (space.hashed().bits() < 1 || space.hashed().bits() > FeatureSpace::kMaxBits) {
        return InvalidSetting(
            "model.feature_space.hashed.bits",
            absl::StrCat(space.hashed().bits(), " is not between 1 and ", FeatureSpace::kMaxBits));
      }
      return FeatureSpace{FeatureSpace::Kind::kHashed, 1U << space.hashed().bits()};
    case v1::FeatureSpace::kNamed:
      if (space.named().max_features() < 1 ||
          space.named().max_features() > FeatureSpace::kMaxFeatures) {
        return InvalidSetting("model.feature_space.named.max_features",
                              absl::StrCat(space.named().max_features(), " is not between 1 and ",
                                           FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kNamed, space.named().max_features()};
    case v1::FeatureSpace::kComposition:
      if (space.composition().inputs_size() < 1 ||
          space.composition().inputs_size() > kMaxComponents) {
        return InvalidSetting("model.feature_space.composition.inputs",
                              absl::StrCat(space.composition().inputs_size(),
                                           " is not between 1 and ", kMaxComponents, " models"));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense,
                          static_cast<uint32_t>(space.composition().inputs_size())};
    case v1::FeatureSpace::SPACE_NOT_SET:
      break;
  }
  return InvalidSetting(
      "model.feature_space",
      "say where examples live: dense of a dimension, hashed of some bits, named, or a "
      "composition of other models");
}

FeatureMap ReadMap(const v1::FeatureMap& map) {
  FeatureMap read;
  switch (map.map_case()) {
    case v1::FeatureMap::kPolynomial:
      read.kind = FeatureMap::Kind::kPolynomial;
      read.degree = map.polynomial().degree();
      read.interactions_only = map.polynomial().interactions_only();
      break;
    case v1::FeatureMap::kProducts:
      read.kind = FeatureMap::Kind::kProducts;
      read.interactions_only = map.products().interactions_only();
      for (const v1::FeatureMap::Products::Pair& pair : map.products().pairs())
        read.pairs.push_back({pair.first(), pair.second()});
      break;
    case v1::FeatureMap::kFourier:
      read.kind = FeatureMap::Kind::kFourier;
      read.dimension = map.fourier().dimension();
      read.gamma = map.fourier().gamma();
      read.seed = map.fourier().seed();
      break;
    case v1::FeatureMap::MAP_NOT_SET:
      break;
  }
  return read;
}

// The map's message in FeatureMap, for the path of a field that is out of range.
const char* MapName(const FeatureMap& map) {
  switch (map.kind) {
    case FeatureMap::Kind::kPolynomial:
      return "polynomial";
    case FeatureMap::Kind::kProducts:
      return "products";
    case FeatureMap::Kind::kFourier:
      return "fourier";
    case FeatureMap::Kind::kIdentity:
      break;
  }
  return "identity";
}

}  // namespace

void FillDefaultOutputs(v1::FeatureSpace& space) {
  if (!space.has_composition()) return;
  for (v1::FeatureSpace::Composition::Input& input :
       *space.mutable_composition()->mutable_inputs()) {
    if (input.output() == v1::FeatureSpace::Composition::OUTPUT_UNSPECIFIED)
      input.set_output(v1::FeatureSpace::Composition::OUTPUT_STEP);
  }
}

absl::StatusOr<FeatureSpace> ReadSpace(const v1::FeatureSpace& stored) {
  absl::StatusOr<FeatureSpace> space = ReadInputSpace(stored);
  if (!space.ok()) return space;
  space->map = ReadMap(stored.map());
  if (const std::optional<MapProblem> problem = CheckFeatureMap(*space)) {
    return InvalidSetting(absl::StrCat("model.feature_space.map.", MapName(space->map),
                                       problem->field.empty() ? "" : ".", problem->field),
                          problem->description);
  }
  return space;
}

absl::StatusOr<std::vector<Component>> ReadComponents(const v1::FeatureSpace& space) {
  std::vector<Component> components;
  for (const v1::FeatureSpace::Composition::Input& input : space.composition().inputs()) {
    switch (input.output()) {
      case v1::FeatureSpace::Composition::OUTPUT_UNSPECIFIED:
      case v1::FeatureSpace::Composition::OUTPUT_STEP:
        components.push_back({input.model(), Component::Output::kStep});
        break;
      case v1::FeatureSpace::Composition::OUTPUT_SIGN:
        components.push_back({input.model(), Component::Output::kSign});
        break;
      case v1::FeatureSpace::Composition::OUTPUT_SCORE:
        components.push_back({input.model(), Component::Output::kScore});
        break;
      default:
        return InvalidSetting(
            absl::StrCat("model.feature_space.composition.inputs[", components.size(), "].output"),
            absl::StrCat("this server knows no output number ", input.output()));
    }
  }
  return components;
}

}  // namespace perceptrond
