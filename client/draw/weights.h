// The picture of weight space: a point is a pair of weights (a boundary in feature space), and an
// example is a line; the weights on one side of it classify the example correctly.
#pragma once

#include <string>
#include <vector>

#include "client/draw/plane.h"

namespace perceptrond::client {

struct WeightsPicture {
  // An example: the half-plane of weights that classify it correctly, and its label.
  struct Example {
    HalfPlane right;
    int label = 0;
    // The model misclassifies it.
    bool wrong = false;

    // The two weights do not affect its score.
    bool Fixed() const { return right.a == 0 && right.b == 0; }
  };

  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  std::string negative;
  std::string positive;
  // The model's weights.
  Point weights;
  // The examples with a label. At most kMostLines are drawn, the nearest to the weights; the region
  // is that of all of them.
  std::vector<Example> examples;
};

inline constexpr size_t kMostLines = 150;

// Returns the picture as SVG.
std::string Draw(const WeightsPicture& picture);

// A window around the origin and the weights.
Window WindowFor(const WeightsPicture& picture);

// The part of the window whose weights classify every example correctly; may be empty, for example
// because of a misclassified example without the two features. O(examples x corners).
Polyline RightForAll(const std::vector<WeightsPicture::Example>& examples, const Window& window);

}  // namespace perceptrond::client
