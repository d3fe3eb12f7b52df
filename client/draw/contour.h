// Where a function of two variables, known on a grid, has a given value: marching squares
// (Lorensen, Cline 1987, in the plane), with straight lines within a square. For a linear function
// that is exact, and where the lines of a square could be drawn in two ways, its mean decides.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "client/draw/plane.h"

namespace perceptrond::client {

// Values at columns x rows places, evenly over the window, borders included; row by row, the lowest
// y first. At least two of each; values finite.
struct Field {
  Window window;
  size_t columns = 0;
  size_t rows = 0;
  std::vector<double> values;
  // Where the sign changes between two places, as a share of the way: from each place to the next
  // column, then from each to the next row; no number where it does not. Empty: as if the field was
  // linear in between. See Turns.
  std::vector<double> turns{};
  // Somewhere it does so at once.
  bool jumps = false;

  double at(size_t column, size_t row) const { return values[row * columns + column]; }
  // Rounded to float32, as what is asked there is.
  double x(size_t column) const;
  double y(size_t row) const;
};

// The linear function that the field is, but for the rounding of float32; absent if it is none.
// O(columns rows).
std::optional<HalfPlane> AsLinear(const Field& field);

// The lines along which the field has the value; closed ones end where they begin. O(columns rows).
std::vector<Polyline> Contours(const Field& field, double value);

// The areas of the window where the field is at least the value, as closed lines to be filled by
// the even-odd rule. O(columns rows).
std::vector<Polyline> AreasAbove(const Field& field, double value);

// Threads: one.
class Turns {
 public:
  // Between all neighbours whose signs differ, 0 being one of its own; none if they are too many to
  // be asked about. O(columns rows).
  explicit Turns(const Field& field);

  // The middles of what is left: their values are to be taken, in this order.
  std::vector<Point> Places() const;
  void Take(const std::vector<double>& values);
  // Fills in the field's turns, and whether it jumps.
  void Finish(Field* field) const;

 private:
  // The way from a place of the grid to its neighbour, and what is left of it.
  struct Way {
    size_t edge = 0;
    Point from;
    Point to;
    double lo = 0;
    double hi = 1;
    double lo_value = 0;
    double hi_value = 0;
    // |difference| of the field at its ends.
    double rise = 0;
  };

  void Add(const Field& field, size_t edge, size_t column, size_t row, size_t to_column,
           size_t to_row);

  const size_t edges_;
  std::vector<Way> ways_;
};

}  // namespace perceptrond::client
