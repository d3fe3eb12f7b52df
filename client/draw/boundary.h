// The picture of a model in the plane of two features: examples, the boundary, the margin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/draw/contour.h"

namespace perceptrond::client {

struct DrawnExample {
  Point at;
  // -1 or +1; 0: it has none.
  int label = 0;
  // The model's answer to the whole example is another.
  bool wrong = false;
};

struct BoundaryPicture {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  // What -1 and +1 are called.
  std::string negative;
  std::string positive;
  std::vector<DrawnExample> examples;
  // The model's scores over the plane; its window is what is drawn.
  Field scores;
  // The size of the score at the margin lines; absent: none are drawn.
  std::optional<double> margin_score;
  // Of them, for the legend.
  std::string margin_text;
  // Lines under the legend: what else is to be known.
  std::vector<std::string> notes;
};

// As SVG. Needs a window that is not empty.
std::string Draw(const BoundaryPicture& picture);

// The window for these examples, whose units of x and y are as long as each other in the picture if
// that serves both.
Window WindowFor(const std::vector<DrawnExample>& examples);

}  // namespace perceptrond::client
