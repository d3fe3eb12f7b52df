// The same picture in the space of weights: a point there is a boundary among the examples, and an
// example is a line there, at one side of which the weights are that get it right. (seed 002)
#pragma once

#include <string>
#include <vector>

#include "client/draw/plane.h"

namespace perceptrond::client {

struct WeightsPicture {
  // An example: within its half-plane it is right; its label says how it is drawn.
  struct Example {
    HalfPlane right;
    int label = 0;
    // The model's answer to it is another.
    bool wrong = false;

    // These two weights decide nothing of it: it is right or wrong, as it is, wherever they are.
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
  // Those with a label. At most kMostLines of them are drawn, the nearest to the weights; the
  // region is that of all.
  std::vector<Example> examples;
};

inline constexpr size_t kMostLines = 150;

// As SVG.
std::string Draw(const WeightsPicture& picture);

// A window around the origin and the weights.
Window WindowFor(const WeightsPicture& picture);

// The part of the window whose weights get every example right; empty if there is none, as where
// an example is wrong that has neither of the two features.
// O(examples x corners).
Polyline RightForAll(const std::vector<WeightsPicture::Example>& examples, const Window& window);

}  // namespace perceptrond::client
