#include "core/settings/learner_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/vector/name.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::string_view kField = "model.learner.starting_weights";

absl::Status CheckPositions(const v1::WeightVector& weights, const FeatureSpace& space) {
  const bool named = space.kind == FeatureSpace::Kind::kNamed;
  const int positions = named ? weights.names_size() : weights.indices_size();
  if ((named ? weights.indices_size() : weights.names_size()) > 0 ||
      positions != weights.values_size()) {
    return InvalidSetting(kField,
                          named ? "a named space takes as many names as values, and no indices"
                                : "takes as many indices as values, and no names");
  }
  if (named) {
    const absl::flat_hash_set<absl::string_view> distinct(weights.names().begin(),
                                                          weights.names().end());
    if (static_cast<int>(distinct.size()) != positions)
      return InvalidSetting(kField, "a name is given twice");
    for (const std::string& name : weights.names()) {
      if (name.empty() || name.size() > kMaxNameBytes)
        return InvalidSetting(kField, absl::StrCat("a name has 1 to ", kMaxNameBytes,
                                                   " bytes, one has ", name.size()));
    }
    if (static_cast<uint32_t>(positions) > space.size)
      return InvalidSetting(kField, "more names than max_features");
    return absl::OkStatus();
  }
  for (int i = 0; i < positions; ++i) {
    if (weights.indices(i) >= space.size)
      return InvalidSetting(
          kField, absl::StrCat("index ", weights.indices(i), " is not below ", space.size));
    if (i > 0 && weights.indices(i - 1) >= weights.indices(i))
      return InvalidSetting(kField, "indices must strictly ascend");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StartingWeights> ReadStart(const v1::Learner& learner, const FeatureSpace& space) {
  if (learner.starting_weights().vectors_size() == 0) return StartingWeights();
  if (learner.starting_weights().vectors_size() > 1)
    return InvalidSetting(absl::StrCat(kField, ".vectors"), "a model of two labels has one vector");
  const v1::WeightVector& weights = learner.starting_weights().vectors(0);
  if (absl::Status status = CheckPositions(weights, space); !status.ok()) return status;
  if (!std::isfinite(weights.bias()) ||
      !std::all_of(weights.values().begin(), weights.values().end(),
                   [](float v) { return std::isfinite(v); })) {
    return InvalidSetting(kField, "weights must be finite");
  }
  if (weights.bias() != 0 && learner.bias_input() == 0) {
    return InvalidSetting(absl::StrCat(kField, ".bias"),
                          "without a bias input (bias_input is 0) there is no bias");
  }
  if (weights.bias() != 0 &&
      !(std::abs(weights.bias() / learner.bias_input()) <= std::numeric_limits<float>::max())) {
    return InvalidSetting(absl::StrCat(kField, ".bias"),
                          "divided by bias_input it is out of float32's range");
  }
  StartingWeights start;
  start.indices.assign(weights.indices().begin(), weights.indices().end());
  start.names.assign(weights.names().begin(), weights.names().end());
  start.values.assign(weights.values().begin(), weights.values().end());
  start.bias = weights.bias();
  // Names are numbered in their order: see core/features/names.h.
  for (size_t i = 0; i < start.names.size(); ++i)
    start.indices.push_back(static_cast<uint32_t>(i + 1));
  return start;
}

}  // namespace perceptrond
