// Where between the places of a field its sign changes. A linear field says so by itself; one that
// is bent, or jumps as a composition of gates does, is asked between its places, in halves.
#pragma once

#include <cstddef>
#include <vector>

#include "client/draw/contour.h"

namespace perceptrond::client {

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
