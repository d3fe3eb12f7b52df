#include "client/draw/geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace perceptrond::client {
namespace {

// Tolerance relative to the largest value: scores are float32.
constexpr double kRounding = 1e-5;
constexpr double kOutside = -std::numeric_limits<double>::infinity();

// 0, or a contour value just above 0 with no score in between.
bool IsZero(double value) { return value >= 0 && value <= std::numeric_limits<double>::min(); }

double GridValue(Range range, size_t i, size_t of) {
  const double share = static_cast<double>(i) / static_cast<double>(of - 1);
  return static_cast<double>(static_cast<float>(range.lo + range.size() * share));
}

// A grid with lines at any coordinates.
struct Grid {
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<double> values;
  // The field inside, surrounded by `rim` lines.
  const Field* field = nullptr;
  size_t rim = 0;

  size_t columns() const { return xs.size(); }
  double at(size_t column, size_t row) const { return values[row * columns() + column]; }
};

Grid GridOf(const Field& field) {
  Grid grid;
  for (size_t i = 0; i < field.columns; ++i) grid.xs.push_back(field.x(i));
  for (size_t i = 0; i < field.rows; ++i) grid.ys.push_back(field.y(i));
  grid.values = field.values;
  grid.field = &field;
  return grid;
}

// Adds a rim of zero width with the value -infinity, so that every line closes, if necessary along
// the border of the window.
Grid WithRim(const Grid& inner) {
  Grid grid;
  grid.field = inner.field;
  grid.rim = 1;
  const auto widen = [](const std::vector<double>& points) {
    std::vector<double> wide{points.front()};
    wide.insert(wide.end(), points.begin(), points.end());
    wide.push_back(points.back());
    return wide;
  };
  grid.xs = widen(inner.xs);
  grid.ys = widen(inner.ys);
  grid.values.assign(grid.xs.size() * grid.ys.size(), kOutside);
  for (size_t row = 0; row < inner.ys.size(); ++row) {
    for (size_t column = 0; column < inner.xs.size(); ++column)
      grid.values[(row + 1) * grid.columns() + column + 1] = inner.at(column, row);
  }
  return grid;
}

// Marching squares. Each edge of the grid is crossed at most once; edges are numbered, horizontal
// ones first.
class Marching {
 public:
  Marching(const Grid& grid, double value)
      : grid_(grid), value_(value), nodes_(grid.xs.size() * grid.ys.size()), next_(2 * nodes_) {
    for (size_t row = 0; row + 1 < grid_.ys.size(); ++row) {
      for (size_t column = 0; column + 1 < grid_.xs.size(); ++column) Square(column, row);
    }
  }

  std::vector<Polyline> Lines() {
    std::vector<Polyline> lines;
    // Open lines first; the remaining ones are closed.
    for (size_t edge = 0; edge < next_.size(); ++edge)
      if (next_[edge].count == 1) lines.push_back(Follow(edge));
    for (size_t edge = 0; edge < next_.size(); ++edge) {
      if (next_[edge].count == 2) lines.push_back(Follow(edge));
    }
    return lines;
  }

 private:
  // The edges linked to a crossed edge through the squares at its sides.
  struct Links {
    std::array<size_t, 2> edges{};
    int count = 0;
  };

  size_t Node(size_t column, size_t row) const { return row * grid_.columns() + column; }
  bool Above(size_t column, size_t row) const { return grid_.at(column, row) >= value_; }

  void Link(size_t a, size_t b) {
    next_[a].edges[static_cast<size_t>(next_[a].count++)] = b;
    next_[b].edges[static_cast<size_t>(next_[b].count++)] = a;
  }

  void Square(size_t column, size_t row) {
    const bool low_left = Above(column, row);
    const bool low_right = Above(column + 1, row);
    const bool high_left = Above(column, row + 1);
    const bool high_right = Above(column + 1, row + 1);
    const size_t bottom = Node(column, row);
    const size_t top = Node(column, row + 1);
    const size_t left = nodes_ + Node(column, row);
    const size_t right = nodes_ + Node(column + 1, row);
    std::vector<size_t> crossed;
    if (low_left != low_right) crossed.push_back(bottom);
    if (low_right != high_right) crossed.push_back(right);
    if (high_left != high_right) crossed.push_back(top);
    if (low_left != high_left) crossed.push_back(left);
    if (crossed.size() == 2) return Link(crossed[0], crossed[1]);
    if (crossed.empty()) return;
    // A saddle: the sign of the mean decides which corners are connected.
    const double mean = (grid_.at(column, row) + grid_.at(column + 1, row) +
                         grid_.at(column, row + 1) + grid_.at(column + 1, row + 1)) /
                        4;
    if ((mean >= value_) == low_left) {
      Link(bottom, right);
      Link(top, left);
    } else {
      Link(bottom, left);
      Link(top, right);
    }
  }

  // The point where the edge is crossed.
  Point Crossing(size_t edge) const {
    const bool vertical = edge >= nodes_;
    const size_t node = vertical ? edge - nodes_ : edge;
    const size_t column = node % grid_.columns();
    const size_t row = node / grid_.columns();
    const size_t to_column = vertical ? column : column + 1;
    const size_t to_row = vertical ? row + 1 : row;
    const double from = grid_.at(column, row);
    const double to = grid_.at(to_column, to_row);
    const double share = ShareOf(column, row, vertical, from, to);
    return {grid_.xs[column] + share * (grid_.xs[to_column] - grid_.xs[column]),
            grid_.ys[row] + share * (grid_.ys[to_row] - grid_.ys[row])};
  }

  // The crossing as a fraction of the edge.
  double ShareOf(size_t column, size_t row, bool vertical, double from, double to) const {
    // Both ends of a rim edge are the same point.
    if (!std::isfinite(from) || !std::isfinite(to)) return 0;
    const Field& field = *grid_.field;
    if (!field.sign_changes.empty() && IsZero(value_)) {
      const size_t node = (row - grid_.rim) * field.columns + column - grid_.rim;
      const double turn = field.sign_changes[node + (vertical ? field.columns * field.rows : 0)];
      if (!std::isnan(turn)) return turn;
    }
    return (value_ - from) / (to - from);
  }

  // Follows a line from an edge to its end or back to its start, removing its links.
  Polyline Follow(size_t edge) {
    Polyline line{Crossing(edge)};
    while (next_[edge].count > 0) {
      Links& links = next_[edge];
      const size_t to = links.edges[static_cast<size_t>(--links.count)];
      Unlink(to, edge);
      edge = to;
      line.push_back(Crossing(edge));
    }
    return line;
  }

  void Unlink(size_t edge, size_t other) {
    Links& links = next_[edge];
    if (links.count == 2 && links.edges[0] == other) links.edges[0] = links.edges[1];
    --links.count;
  }

  const Grid& grid_;
  const double value_;
  const size_t nodes_;
  std::vector<Links> next_;
};

}  // namespace

double Field::x(size_t column) const { return GridValue(window.x, column, columns); }

double Field::y(size_t row) const { return GridValue(window.y, row, rows); }

std::optional<HalfPlane> AsLinear(const Field& field) {
  const double corner = field.at(0, 0);
  HalfPlane linear;
  linear.a = (field.at(field.columns - 1, 0) - corner) / field.window.x.size();
  linear.b = (field.at(0, field.rows - 1) - corner) / field.window.y.size();
  linear.c = corner - linear.a * field.window.x.lo - linear.b * field.window.y.lo;
  double largest = 0;
  double off = 0;
  for (size_t row = 0; row < field.rows; ++row) {
    for (size_t column = 0; column < field.columns; ++column) {
      const double value = field.at(column, row);
      largest = std::max(largest, std::abs(value));
      off = std::max(off, std::abs(value - linear.At({field.x(column), field.y(row)})));
    }
  }
  return off <= kRounding * largest ? std::optional(linear) : std::nullopt;
}

std::vector<Polyline> Contours(const Field& field, double value) {
  const Grid grid = GridOf(field);
  return Marching(grid, value).Lines();
}

std::vector<Polyline> AreasAbove(const Field& field, double value) {
  const Grid grid = WithRim(GridOf(field));
  return Marching(grid, value).Lines();
}

namespace {

// Most sign changes that are refined; typical pictures have some thousands.
constexpr size_t kMost = 20'000;

int SignOf(double value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

}  // namespace

SignChanges::SignChanges(const Field& field) : edges_(2 * field.columns * field.rows) {
  const size_t nodes = field.columns * field.rows;
  for (size_t row = 0; row < field.rows; ++row) {
    for (size_t column = 0; column < field.columns; ++column) {
      const size_t node = row * field.columns + column;
      if (column + 1 < field.columns) Add(field, node, column, row, column + 1, row);
      if (row + 1 < field.rows) Add(field, nodes + node, column, row, column, row + 1);
    }
  }
  if (intervals_.size() > kMost) intervals_.clear();
}

void SignChanges::Add(const Field& field, size_t edge, size_t column, size_t row, size_t to_column,
                      size_t to_row) {
  const double from = field.at(column, row);
  const double to = field.at(to_column, to_row);
  if (SignOf(from) == SignOf(to)) return;
  Interval interval;
  interval.edge = edge;
  interval.from = {field.x(column), field.y(row)};
  interval.to = {field.x(to_column), field.y(to_row)};
  interval.lo_value = from;
  interval.hi_value = to;
  interval.rise = std::abs(to - from);
  intervals_.push_back(interval);
}

std::vector<Point> SignChanges::Points() const {
  std::vector<Point> points;
  for (const Interval& interval : intervals_) {
    const double middle = (interval.lo + interval.hi) / 2;
    points.push_back({interval.from.x + middle * (interval.to.x - interval.from.x),
                      interval.from.y + middle * (interval.to.y - interval.from.y)});
  }
  return points;
}

void SignChanges::SetValues(const std::vector<double>& values) {
  for (size_t i = 0; i < std::min(values.size(), intervals_.size()); ++i) {
    Interval& interval = intervals_[i];
    const bool before = SignOf(values[i]) == SignOf(interval.lo_value);
    (before ? interval.lo : interval.hi) = (interval.lo + interval.hi) / 2;
    (before ? interval.lo_value : interval.hi_value) = values[i];
  }
}

void SignChanges::Finish(Field* field) const {
  field->sign_changes.assign(edges_, std::numeric_limits<double>::quiet_NaN());
  for (const Interval& interval : intervals_) {
    field->sign_changes[interval.edge] = (interval.lo + interval.hi) / 2;
    // Discontinuous if the remaining interval contains most of the difference.
    const bool halved = interval.hi - interval.lo <= 0.25;
    if (halved && std::abs(interval.hi_value - interval.lo_value) > interval.rise / 2)
      field->discontinuous = true;
  }
}

}  // namespace perceptrond::client
