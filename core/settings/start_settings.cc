#include "core/settings/learner_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

absl::Status CheckBias(double bias, double bias_input) {
  const std::string field = absl::StrCat(kField, ".bias");
  if (bias == 0) return absl::OkStatus();
  if (bias_input == 0)
    return InvalidSetting(field, "without a bias input (bias_input is 0) there is no bias");
  if (!(std::abs(bias / bias_input) <= std::numeric_limits<float>::max()))
    return InvalidSetting(field, "divided by bias_input it is out of float32's range");
  return absl::OkStatus();
}

// Numbers names in their order, over all vectors: see core/features/names.h.
class NameNumbers {
 public:
  uint32_t Number(const std::string& name, std::vector<std::string>& names) {
    const auto [number, is_new] = numbers_.try_emplace(name, names.size() + 1);
    if (is_new) names.push_back(name);
    return static_cast<uint32_t>(number->second);
  }

 private:
  absl::flat_hash_map<absl::string_view, size_t> numbers_;
};

}  // namespace

absl::StatusOr<StartingWeights> ReadStart(const v1::Learner& learner, const FeatureSpace& space) {
  const auto& vectors = learner.starting_weights().vectors();
  if (!learner.has_classes() && vectors.size() > 1)
    return InvalidSetting(absl::StrCat(kField, ".vectors"), "a model of two labels has one vector");
  StartingWeights start;
  NameNumbers numbers;
  for (const v1::WeightVector& weights : vectors) {
    if (absl::Status status = CheckPositions(weights, space); !status.ok()) return status;
    if (!std::isfinite(weights.bias()) ||
        !std::all_of(weights.values().begin(), weights.values().end(),
                     [](float v) { return std::isfinite(v); }))
      return InvalidSetting(kField, "weights must be finite");
    if (absl::Status status = CheckBias(weights.bias(), learner.bias_input()); !status.ok())
      return status;
    StartingWeights::Vector& vector = start.vectors.emplace_back();
    vector.indices.assign(weights.indices().begin(), weights.indices().end());
    vector.values.assign(weights.values().begin(), weights.values().end());
    vector.bias = weights.bias();
    for (const std::string& name : weights.names())
      vector.indices.push_back(numbers.Number(name, start.names));
  }
  if (start.names.size() > space.size)
    return InvalidSetting(kField, "more names than max_features");
  return start;
}

}  // namespace perceptrond
