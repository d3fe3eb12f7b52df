#include "client/ctl/draw/plane.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

constexpr size_t kFew = 2;

FeatureKey KeyAt(const Row& row, size_t i) {
  if (row.kind == RowKind::kNamed) return {true, std::string(row.name(i)), 0};
  return {false, "", row.kind == RowKind::kDense ? static_cast<uint32_t>(i) : row.indices[i]};
}

float ValueAt(const Row& row, size_t i) { return row.values.empty() ? 1 : row.values[i]; }

// Distinct features of the rows; stops once there are more than two.
std::set<FeatureKey> FewOf(const std::vector<Row>& rows) {
  std::set<FeatureKey> features;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.feature_count() && features.size() <= kFew; ++i)
      features.insert(KeyAt(row, i));
  }
  return features;
}

bool ByName(const perceptron::v1::FeatureSpace& space, const std::vector<Row>& rows) {
  if (space.has_named()) return true;
  return space.has_hashed() && !rows.empty() && rows.front().kind == RowKind::kNamed;
}

absl::StatusOr<FeatureKey> Parse(const std::string& text, bool by_name,
                                 const perceptron::v1::FeatureSpace& space) {
  if (by_name) return FeatureKey{true, text, 0};
  FeatureKey key;
  if (!absl::SimpleAtoi(text, &key.index)) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is not an index; the model's features have indices from 0"));
  }
  if (space.has_dense() && key.index >= space.dense().dimension()) {
    return absl::InvalidArgumentError(absl::StrCat("index ", key.index,
                                                   " is out of range: the "
                                                   "model's features are 0 to ",
                                                   space.dense().dimension() - 1));
  }
  if (space.has_hashed() && key.index >= 1U << space.hashed().bits()) {
    return absl::InvalidArgumentError(absl::StrCat("index ", key.index,
                                                   " is out of range: the "
                                                   "model's weights are 0 to ",
                                                   (1U << space.hashed().bits()) - 1));
  }
  return key;
}

absl::StatusOr<std::pair<FeatureKey, float>> ParseAt(const std::string& text, bool by_name,
                                                     const perceptron::v1::FeatureSpace& space) {
  const size_t end = text.rfind('=');
  float value = 0;
  if (end == std::string::npos || !absl::SimpleAtof(text.substr(end + 1), &value) ||
      !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--at ", text, ": expected FEATURE=VALUE, such as age=30"));
  }
  absl::StatusOr<FeatureKey> key = Parse(text.substr(0, end), by_name, space);
  if (!key.ok()) return key.status();
  return std::pair(*std::move(key), value);
}

}  // namespace

std::string FeatureKey::Title() const { return named ? name : absl::StrCat("feature ", index); }

float ValueIn(const Row& row, const FeatureKey& feature) {
  if (feature.named != (row.kind == RowKind::kNamed)) return 0;
  if (row.kind == RowKind::kDense)
    return feature.index < row.values.size() ? row.values[feature.index] : 0;
  float value = 0;
  for (size_t i = 0; i < row.feature_count(); ++i) {
    const bool is = feature.named ? row.name(i) == feature.name : row.indices[i] == feature.index;
    // Values of a repeated name add up.
    if (is) value += ValueAt(row, i);
  }
  return value;
}

absl::StatusOr<FeaturePlane> FeaturePlane::Make(const PlaneFlags& flags,
                                                const perceptron::v1::FeatureSpace& space,
                                                const std::vector<Row>& rows) {
  FeaturePlane plane;
  const bool by_name = ByName(space, rows);
  if (flags.x.empty() != flags.y.empty())
    return absl::InvalidArgumentError("give both --x and --y");
  if (!flags.x.empty()) {
    absl::StatusOr<FeatureKey> x = Parse(flags.x, by_name, space);
    if (!x.ok()) return x.status();
    absl::StatusOr<FeatureKey> y = Parse(flags.y, by_name, space);
    if (!y.ok()) return y.status();
    if (*x == *y) return absl::InvalidArgumentError("--x and --y are the same feature");
    plane.x_ = *std::move(x);
    plane.y_ = *std::move(y);
  } else if (space.has_dense() && space.dense().dimension() == kFew) {
    plane.y_.index = 1;
  } else {
    const std::set<FeatureKey> features = FewOf(rows);
    if (features.size() != kFew) {
      return absl::InvalidArgumentError(
          "the examples do not have exactly two features: choose two with --x FEATURE --y FEATURE, "
          "or draw --what learning-curve");
    }
    plane.x_ = *features.begin();
    plane.y_ = *features.rbegin();
  }
  for (const std::string& at : flags.at) {
    auto other = ParseAt(at, by_name, space);
    if (!other.ok()) return other.status();
    if (other->first == plane.x_ || other->first == plane.y_)
      return absl::InvalidArgumentError(absl::StrCat("--at ", at, ": this feature is an axis"));
    plane.others_.push_back(*std::move(other));
  }
  return plane;
}

std::vector<std::string> FeaturePlane::NamesNotIn(const std::vector<Row>& rows) const {
  std::set<std::string> names;
  for (const FeatureKey& feature : {x_, y_})
    if (feature.named) names.insert(feature.name);
  for (const auto& [feature, value] : others_)
    if (feature.named) names.insert(feature.name);
  for (const Row& row : rows) {
    if (names.empty()) break;
    if (row.kind != RowKind::kNamed) continue;
    for (size_t i = 0; i < row.feature_count(); ++i) names.erase(std::string(row.name(i)));
  }
  return {names.begin(), names.end()};
}

Point FeaturePlane::PointOf(const Row& row) const { return {ValueIn(row, x_), ValueIn(row, y_)}; }

bool FeaturePlane::Holds(const Row& row) const {
  for (const auto& [feature, value] : others_)
    if (ValueIn(row, feature) != value) return false;
  for (size_t i = 0; i < row.feature_count(); ++i) {
    const FeatureKey key = KeyAt(row, i);
    const bool known = key == x_ || key == y_ ||
                       std::any_of(others_.begin(), others_.end(),
                                   [&](const auto& other) { return other.first == key; });
    if (!known && ValueAt(row, i) != 0) return false;
  }
  return true;
}

void FeaturePlane::MakeRow(Point at, Row* row) const {
  row->Clear();
  row->kind = x_.named ? RowKind::kNamed : RowKind::kSparse;
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto add = [row, kMost](const FeatureKey& feature, double value) {
    if (feature.named) row->AddName(feature.name);
    if (!feature.named) row->indices.push_back(feature.index);
    // Rounding may exceed the range of float32 at the ends of the window.
    row->values.push_back(static_cast<float>(std::clamp(value, -kMost, kMost)));
  };
  add(x_, at.x);
  add(y_, at.y);
  for (const auto& [feature, value] : others_) add(feature, value);
}

namespace {

namespace v1 = ::perceptron::v1;

// Names listed in an error message, about two lines.
constexpr size_t kShownFeatures = 8;

std::set<std::string> NamesOf(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.kind != RowKind::kNamed) continue;
    for (size_t i = 0; i < row.feature_count(); ++i) names.insert(std::string(row.name(i)));
  }
  return names;
}

std::string List(const std::set<std::string>& names) {
  std::string text;
  size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kShownFeatures) return absl::StrCat(text, ", ...");
    absl::StrAppend(&text, shown++ == 0 ? "" : ", ", PrintableInLine(name));
  }
  return text;
}

}  // namespace

// perceptron.v1.FeatureMap defines the names of products.
std::vector<std::string> FactorsOf(std::string_view weight, const v1::FeatureMap& map) {
  if (!map.has_polynomial() && !map.has_products()) return {std::string(weight)};
  std::vector<std::string> factors(1);
  for (size_t i = 0; i < weight.size(); ++i) {
    if (weight[i] == '*') {
      factors.emplace_back();
      continue;
    }
    if (weight[i] == '\\' && i + 1 < weight.size()) ++i;
    factors.back() += weight[i];
  }
  return factors;
}

absl::Status CheckName(const std::string& name, const std::vector<Row>& rows,
                       const v1::FeatureMap& map, const v1::Weights* weights) {
  std::set<std::string> known = NamesOf(rows);
  bool derived = false;
  if (weights != nullptr) {
    for (const v1::WeightVector& vector : weights->vectors()) {
      for (const std::string& weight : vector.names()) {
        std::vector<std::string> factors = FactorsOf(weight, map);
        derived = derived || (factors.size() > 1 && weight == name);
        for (std::string& factor : factors) known.insert(std::move(factor));
      }
    }
  }
  if (known.contains(name)) return absl::OkStatus();
  const std::string quoted = absl::StrCat("\"", PrintableInLine(name), "\"");
  const std::string others = known.empty() ? "" : absl::StrCat("; known features: ", List(known));
  if (derived) {
    return absl::InvalidArgumentError(absl::StrCat(
        quoted, " is a product made by the feature map; choose features of the examples", others));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown feature ", quoted, ": ",
                   weights != nullptr ? "neither an example nor a weight of the model has it"
                                      : "no example drawn has it",
                   others));
}

}  // namespace perceptrond::client
