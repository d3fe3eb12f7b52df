// The picture of a learning curve: mistakes, weight norm, margin and error by revision.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace perceptrond::client {

struct CurvePoint {
  double revision = 0;
  double examples = 0;
  double mistakes = 0;
  double weight_norm = 0;
  // Absent: unknown, a gap in the curve.
  std::optional<double> margin_ceiling;
  std::optional<double> margin_floor;
  std::optional<double> window_error;
};

struct LearningCurvePicture {
  std::string title;
  std::string subtitle;
  // By ascending revision. The last two may have the same revision: the model right after its last
  // update, and now, after more examples.
  std::vector<CurvePoint> points;
  // Logarithmic scale of revisions; omits revision 0.
  bool logarithmic = false;
};

// Returns the picture as SVG, with a panel for each kind of figure that has known values.
std::string Draw(const LearningCurvePicture& picture);

}  // namespace perceptrond::client
