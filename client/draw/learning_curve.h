// The picture of a model's life: mistakes, norm, margin and error over its revisions.
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
  // Absent is not known: a gap.
  std::optional<double> margin_ceiling;
  std::optional<double> margin_floor;
  std::optional<double> window_error;
};

struct CurvesPicture {
  std::string title;
  std::string subtitle;
  // By ascending revisions. The last two may have the same: the model right after its last update,
  // and now, after more examples; what changed meanwhile is a line straight up or down.
  std::vector<CurvePoint> points;
  // The revisions on a logarithmic scale; that of 0 is left out then.
  bool logarithmic = false;
};

// As SVG: a panel for each kind of figure of which one is known.
std::string Draw(const CurvesPicture& picture);

}  // namespace perceptrond::client
