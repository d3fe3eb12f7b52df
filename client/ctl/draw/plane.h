// The two features that span a picture, the rows of the plane between them, and the names that can be axes.
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

// One feature, by name or by number. A plain value.
struct FeatureKey {
  bool named = false;
  std::string name;
  uint32_t index = 0;

  auto operator<=>(const FeatureKey&) const = default;
  // As an axis is called.
  std::string Title() const;
};

// Its value in a row: 0 where the row does not have it.
float ValueIn(const Row& row, const FeatureKey& feature);

// As the user says them.
struct PlaneFlags {
  std::string x;
  std::string y;
  // "FEATURE=VALUE".
  std::vector<std::string> at;
};

class FeaturePlane {
 public:
  // Features are names or numbers as the model has them; in a hashed space as the rows have them.
  // Without x and y the two there are: of a dense space of two, or of the rows. INVALID_ARGUMENT
  // says what to state. `space`: where the examples live. Whether names are known is not asked
  // here: draw_names.h.
  static absl::StatusOr<FeaturePlane> Make(const PlaneFlags& flags,
                                           const perceptron::v1::FeatureSpace& space,
                                           const std::vector<Row>& rows);

  const FeatureKey& x() const { return x_; }
  const FeatureKey& y() const { return y_; }
  // The named features that it is made with and none of the rows has.
  std::vector<std::string> NamesNotIn(const std::vector<Row>& rows) const;
  Point PointOf(const Row& row) const;
  // Whether the row's other features are those of the plane.
  bool Holds(const Row& row) const;
  // The plane's row at a point.
  void MakeRow(Point at, Row* row) const;

 private:
  FeatureKey x_;
  FeatureKey y_;
  std::vector<std::pair<FeatureKey, float>> others_;
};

// The names of the features whose product a model's weight of that name is: one, if it is none.
// `map`: the model's.
std::vector<std::string> FactorsOf(std::string_view weight, const perceptron::v1::FeatureMap& map);

// INVALID_ARGUMENT that says why the name is none of them, and which ones are: those of the rows,
// and of `weights`, the model's with their names, if it could be asked.
absl::Status CheckName(const std::string& name, const std::vector<Row>& rows,
                       const perceptron::v1::FeatureMap& map,
                       const perceptron::v1::Weights* weights);

}  // namespace perceptrond::client
