// FeaturePlane: the two features that span a picture, and the examples of their plane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/draw/svg.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// A feature, by name or by index. A plain value.
struct FeatureKey {
  bool named = false;
  std::string name;
  uint32_t index = 0;

  auto operator<=>(const FeatureKey&) const = default;
  // The title of its axis.
  std::string Title() const;
};

// The value of the feature in the row, 0 if the row does not have it.
float ValueIn(const Row& row, const FeatureKey& feature);

// The flags of a plane.
struct PlaneFlags {
  std::string x;
  std::string y;
  // "FEATURE=VALUE".
  std::vector<std::string> at;
};

// A plain value.
class FeaturePlane {
 public:
  // Reads the flags: names or indices, as in the model; in a hashed space as in the rows. Without x
  // and y the two features of a dense space of dimension 2, or of the rows. `space`: the space of
  // the examples. Does not check that names exist; CheckName() does. INVALID_ARGUMENT: flags are
  // missing, or invalid.
  static absl::StatusOr<FeaturePlane> Make(const PlaneFlags& flags,
                                           const perceptron::v1::FeatureSpace& space,
                                           const std::vector<Row>& rows);

  const FeatureKey& x() const { return x_; }
  const FeatureKey& y() const { return y_; }
  // The named features of the plane that no row has.
  std::vector<std::string> NamesNotIn(const std::vector<Row>& rows) const;
  Point PointOf(const Row& row) const;
  // Whether the row lies in the plane.
  bool Holds(const Row& row) const;
  // Makes the row at a point of the plane.
  void MakeRow(Point at, Row* row) const;

 private:
  FeatureKey x_;
  FeatureKey y_;
  std::vector<std::pair<FeatureKey, float>> others_;
};

// Splits the name of a weight into the names of the features whose product it weighs; a single name
// if it is not a product. `map`: the model's feature map.
std::vector<std::string> FactorsOf(std::string_view weight, const perceptron::v1::FeatureMap& map);

// Checks that examples have a feature of this name: one of the rows' names, or of the names in
// `weights` (null: unknown). Products made by a feature map are weights but not features of
// examples. INVALID_ARGUMENT lists known names.
absl::Status CheckName(const std::string& name, const std::vector<Row>& rows,
                       const perceptron::v1::FeatureMap& map,
                       const perceptron::v1::Weights* weights);

}  // namespace perceptrond::client
