// Contour lines of a function of two variables that is known on a grid: marching squares (Lorensen,
// Cline 1987, in the plane), with straight lines within a square. Exact for linear functions; in an
// ambiguous square the mean decides.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "client/draw/plane.h"

namespace perceptrond::client {

// Values at columns x rows points, spread evenly over the window, borders included; row by row, the
// lowest y first. At least two columns and rows; values are finite.
struct Field {
  Window window;
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
