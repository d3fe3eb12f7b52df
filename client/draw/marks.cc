#include "client/draw/marks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace perceptrond::client {
namespace {

bool AreMany(size_t examples) { return examples > 400; }

// Rings that overlap are drawn translucent, so that together they are as dark as one or two rings.
void DrawTranslucentRings(const std::vector<Point>& points, double radius, Svg* svg) {
  constexpr double kCell = 8;
  constexpr double kLeast = 0.05;
  constexpr double kMost = 0.75;
  constexpr double kInk = 1.5;
  const auto cell = [](Point at) {
    return std::pair(std::floor(at.x / kCell), std::floor(at.y / kCell));
  };
  std::map<std::pair<double, double>, int> counts;
  for (const Point at : points) ++counts[cell(at)];
  for (const Point at : points) {
    const double opacity = std::clamp(kInk / counts[cell(at)], kLeast, kMost);
    svg->Add("circle", "wrong-of-many",
             {{"cx", SvgNumber(at.x)},
              {"cy", SvgNumber(at.y)},
              {"r", SvgNumber(radius)},
              {"stroke-opacity", SvgNumber(opacity)}});
  }
}

}  // namespace

double MarkRadius(size_t examples) {
  return examples <= 60 ? 5.5 : examples <= 400 ? 4.2 : examples <= 1000 ? 3.2 : 2.4;
}

const char* RingStyle(size_t examples) { return AreMany(examples) ? "wrong-of-many" : "wrong"; }

void DrawRings(const std::vector<Point>& misclassified, size_t examples, Svg* svg) {
  const double radius = MarkRadius(examples);
  if (AreMany(examples)) return DrawTranslucentRings(misclassified, radius + 0.8, svg);
  for (const Point at : misclassified) svg->Circle(at, radius + 3.5, "wrong");
}

std::vector<Polyline> Drawn(const std::vector<Polyline>& lines, const Axes& axes) {
  std::vector<Polyline> drawn;
  for (const Polyline& line : lines) drawn.push_back(Simplify(axes(line), kTolerance));
  return drawn;
}

}  // namespace perceptrond::client
