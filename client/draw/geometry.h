// Geometry of pictures: half-planes, polygons and lines in a plane (plane.cc), and contour lines of
// a function of two variables that is known on a grid (contour.cc).
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "client/draw/svg.h"

namespace perceptrond::client {

// The interval [lo, hi]; lo < hi, both finite, and positive for a logarithmic scale.
struct Range {
  double lo = 0;
  double hi = 1;

  double size() const { return hi - lo; }
  double middle() const { return lo + (hi - lo) / 2; }
  // The range widened at both ends by `share` of its size.
  Range Padded(double share) const { return {lo - share * size(), hi + share * size()}; }
};

// The smallest non-empty range with all values; equal values get room around them. [0, 1] without
// values. Values must be finite.
Range RangeOf(const std::vector<double>& values);

struct HalfPlane {
  double a = 0;
  double b = 0;
  double c = 0;

  // Positive inside the half-plane.
  double At(Point point) const { return a * point.x + b * point.y + c; }
};

// A rectangle of the plane.
struct Rectangle {
  Range x;
  Range y;

  Polyline Corners() const;
};

// The part of a convex polygon inside the half-plane; may be empty. O(corners). (Sutherland,
// Hodgman 1974)
Polyline Clip(const Polyline& convex, const HalfPlane& half);

// The part of the half-plane's border within the window; absent if there is none, or if a = b = 0.
std::optional<std::pair<Point, Point>> Border(const HalfPlane& half, const Rectangle& window);

// The area of a polygon without self-intersections.
double AreaOf(const Polyline& polygon);

// The line with fewer points, none of the dropped ones further than `tolerance` from it. Keeps both
// ends. O(n log n) on average. (Ramer 1972; Douglas, Peucker 1973)
Polyline Simplify(const Polyline& line, double tolerance);

// Values at columns x rows points, spread evenly over the window, borders included; row by row, the
// lowest y first. At least two columns and rows; values are finite.
struct Field {
  Rectangle window;
  size_t columns = 0;
  size_t rows = 0;
  std::vector<double> values;
  // Where the sign changes between neighbours, as a fraction of their distance: from each point to
  // the next column, then from each point to the next row; NaN where it does not change. Empty: the
  // field is linear between points. SignChanges computes it.
  std::vector<double> sign_changes{};
  // The field is discontinuous at a sign change.
  bool discontinuous = false;

  double at(size_t column, size_t row) const { return values[row * columns + column]; }
  // Coordinates, rounded to float32 like the features of the examples scored there.
  double x(size_t column) const;
  double y(size_t row) const;
};

// The linear function equal to the field up to the rounding of float32; absent if it is not linear.
// O(columns rows).
std::optional<HalfPlane> AsLinear(const Field& field);

// The lines on which the field equals `value`; closed lines end where they begin. O(columns rows).
std::vector<Polyline> Contours(const Field& field, double value);

// The areas of the window where the field is at least `value`, as closed lines to be filled by the
// even-odd rule. O(columns rows).
std::vector<Polyline> AreasAbove(const Field& field, double value);

// Finds where the sign of a non-linear field changes between points of its grid, by bisection:
// score Points(), pass the values to SetValues(), and repeat; then call Finish(). Threads: one.
class SignChanges {
 public:
  // Starts with all neighbours of different sign (0 is a sign of its own), or with none if they are
  // too many. O(columns rows).
  explicit SignChanges(const Field& field);

  // The middles of the intervals; SetValues() expects their values in this order.
  std::vector<Point> Points() const;
  void SetValues(const std::vector<double>& values);
  // Sets field->sign_changes and field->discontinuous.
  void Finish(Field* field) const;

 private:
  // A point of the grid, its neighbour, and the part [lo, hi] of their distance with the sign
  // change.
  struct Interval {
    size_t edge = 0;
    Point from;
    Point to;
    double lo = 0;
    double hi = 1;
    double lo_value = 0;
    double hi_value = 0;
    // Absolute difference of the field between the two points.
    double rise = 0;
  };

  void Add(const Field& field, size_t edge, size_t column, size_t row, size_t to_column,
           size_t to_row);

  const size_t edges_;
  std::vector<Interval> intervals_;
};

}  // namespace perceptrond::client
