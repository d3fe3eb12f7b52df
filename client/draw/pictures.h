// The pictures, as SVG: a model in the plane of two features (boundary.cc; of several classes
// regions.cc), weight space (weights.cc), and a learning curve (learning_curve.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/draw/geometry.h"

namespace perceptrond::client {

struct DrawnExample {
  Point at;
  // -1 or +1; 0: no label. In a RegionsPicture the number of a class; below 0: no label.
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
Rectangle RectangleFor(const std::vector<DrawnExample>& examples);

// Several classes: each point of the plane has the colour of the class predicted there.
struct RegionsPicture {
  struct Class {
    int number = 0;
    std::string name;
    // Above 0 where the class is predicted, below 0 where another one is. Without values: the class
    // is not predicted in the window.
    Field margin;
  };

  std::string title;
  std::string subtitle;
  std::string x_title;
  std::string y_title;
  Rectangle window;
  std::vector<DrawnExample> examples;
  // At most kMostRegions, by number. Examples of others are grey.
  std::vector<Class> classes;
  // The number of classes that are left out.
  size_t other_classes = 0;
  // Further lines under the legend.
  std::vector<std::string> notes;
};

// The colours of the style sheet.
inline constexpr size_t kMostRegions = 8;

// Returns the picture as SVG. Precondition: the window is not empty.
std::string Draw(const RegionsPicture& picture);

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
Rectangle RectangleFor(const WeightsPicture& picture);

// The part of the window whose weights classify every example correctly; may be empty, for example
// because of a misclassified example without the two features. O(examples x corners).
Polyline RightForAll(const std::vector<WeightsPicture::Example>& examples, const Rectangle& window);

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
