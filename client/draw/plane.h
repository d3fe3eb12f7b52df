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

  // Positive inside the half-plane.
  double At(Point point) const { return a * point.x + b * point.y + c; }
};

// A rectangle of the plane.
struct Window {
  Range x;
  Range y;

  Polyline Corners() const;
};

// The part of a convex polygon inside the half-plane; may be empty. O(corners). (Sutherland,
// Hodgman 1974)
Polyline Clip(const Polyline& convex, const HalfPlane& half);

// The part of the half-plane's border within the window; absent if there is none, or if a = b = 0.
std::optional<std::pair<Point, Point>> Border(const HalfPlane& half, const Window& window);

// The area of a polygon without self-intersections.
double AreaOf(const Polyline& polygon);

// The line with fewer points, none of the dropped ones further than `tolerance` from it. Keeps both
// ends. O(n log n) on average. (Ramer 1972; Douglas, Peucker 1973)
Polyline Simplify(const Polyline& line, double tolerance);

}  // namespace perceptrond::client
