// Lines and half-planes in a plane: a x + b y + c against 0.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "client/draw/scale.h"
#include "client/draw/svg.h"

namespace perceptrond::client {

struct HalfPlane {
  double a = 0;
  double b = 0;
  double c = 0;

  // > 0: within.
  double At(Point point) const { return a * point.x + b * point.y + c; }
};

// A rectangle of the plane.
struct Window {
  Range x;
  Range y;

  Polyline Corners() const;
};

// The part of a convex polygon where the half-plane's value is at least 0; empty if none.
// O(corners). (Sutherland, Hodgman 1974)
Polyline Clip(const Polyline& convex, const HalfPlane& half);

// The part of the half-plane's border within the window; absent if it passes it by, or if a and b
// are 0.
std::optional<std::pair<Point, Point>> Border(const HalfPlane& half, const Window& window);

// The area of a polygon that does not cross itself.
double AreaOf(const Polyline& polygon);

// With fewer points, none of which is further than `tolerance` from the line as it was. Ends stay.
// O(n log n) mostly. (Ramer 1972; Douglas, Peucker 1973)
Polyline Simplify(const Polyline& line, double tolerance);

}  // namespace perceptrond::client
