#include "client/draw/turns.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace perceptrond::client {
namespace {

// A picture's worth of lines has some thousands.
constexpr size_t kMost = 20'000;

int SignOf(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

}  // namespace

Turns::Turns(const Field& field) : edges_(2 * field.columns * field.rows) {
  const size_t nodes = field.columns * field.rows;
  for (size_t row = 0; row < field.rows; ++row) {
    for (size_t column = 0; column < field.columns; ++column) {
      const size_t node = row * field.columns + column;
      if (column + 1 < field.columns) Add(field, node, column, row, column + 1, row);
      if (row + 1 < field.rows) Add(field, nodes + node, column, row, column, row + 1);
    }
  }
  if (ways_.size() > kMost) ways_.clear();
}

void Turns::Add(const Field& field, size_t edge, size_t column, size_t row, size_t to_column,
                size_t to_row) {
  const double from = field.at(column, row);
  const double to = field.at(to_column, to_row);
  if (SignOf(from) == SignOf(to)) return;
  Way way;
  way.edge = edge;
  way.from = {field.x(column), field.y(row)};
  way.to = {field.x(to_column), field.y(to_row)};
  way.lo_value = from;
  way.hi_value = to;
  way.rise = std::abs(to - from);
  ways_.push_back(way);
}

std::vector<Point> Turns::Places() const {
  std::vector<Point> places;
  for (const Way& way : ways_) {
    const double middle = (way.lo + way.hi) / 2;
    places.push_back({way.from.x + middle * (way.to.x - way.from.x),
                      way.from.y + middle * (way.to.y - way.from.y)});
  }
  return places;
}

void Turns::Take(const std::vector<double>& values) {
  for (size_t i = 0; i < std::min(values.size(), ways_.size()); ++i) {
    Way& way = ways_[i];
    const bool before = SignOf(values[i]) == SignOf(way.lo_value);
    (before ? way.lo : way.hi) = (way.lo + way.hi) / 2;
    (before ? way.lo_value : way.hi_value) = values[i];
  }
}

void Turns::Finish(Field* field) const {
  field->turns.assign(edges_, std::numeric_limits<double>::quiet_NaN());
  for (const Way& way : ways_) {
    field->turns[way.edge] = (way.lo + way.hi) / 2;
    // Most of the rise lies within what is left of the way.
    const bool halved = way.hi - way.lo <= 0.25;
    if (halved && std::abs(way.hi_value - way.lo_value) > way.rise / 2) field->jumps = true;
  }
}

}  // namespace perceptrond::client
