// The picture of a model in the plane of two features: examples, the boundary, the margin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/draw/contour.h"

namespace perceptrond::client {

struct DrawnExample {
  Point at;
  // -1 or +1; 0: no label.
  int label = 0;
  // The model's prediction for the whole example differs from its label.
  bool wrong = false;
};

struct BoundaryPicture {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  // Names of -1 and +1.
  std::string negative;
  std::string positive;
  std::vector<DrawnExample> examples;
  // The scores over the plane; its window is the part that is drawn.
  Field scores;
  // Absolute score at the margin lines; absent: none are drawn.
  std::optional<double> margin_score;
  // Legend entry of the margin lines.
  std::string margin_text;
  // Further lines under the legend.
  std::vector<std::string> notes;
};

// Returns the picture as SVG. Precondition: the window is not empty.
std::string Draw(const BoundaryPicture& picture);

// The window for these examples; x and y have the same scale, unless their ranges are too
// different.
Window WindowFor(const std::vector<DrawnExample>& examples);

}  // namespace perceptrond::client
