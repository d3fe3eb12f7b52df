#include "client/draw/geometry.h"

#include <algorithm>
#include <cmath>

namespace perceptrond::client {
namespace {

Point Between(Point a, Point b, double share) {
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

double DistanceToSegment(Point p, Point a, Point b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double squared = dx * dx + dy * dy;
  const double along = squared == 0 ? 0 : ((p.x - a.x) * dx + (p.y - a.y) * dy) / squared;
  const Point nearest = Between(a, b, std::clamp(along, 0.0, 1.0));
  return std::hypot(p.x - nearest.x, p.y - nearest.y);
}

// Marks the points to keep between first and last.
void Keep(const Polyline& line, size_t first, size_t last, double tolerance,
          std::vector<bool>& stays) {
  std::vector<std::pair<size_t, size_t>> parts{{first, last}};
  while (!parts.empty()) {
    const auto [begin, end] = parts.back();
    parts.pop_back();
    size_t farthest = begin;
    double distance = tolerance;
    for (size_t i = begin + 1; i < end; ++i) {
      const double of = DistanceToSegment(line[i], line[begin], line[end]);
      if (of <= distance) continue;
      distance = of;
      farthest = i;
    }
    if (farthest == begin) continue;
    stays[farthest] = true;
    parts.emplace_back(begin, farthest);
    parts.emplace_back(farthest, end);
  }
}

}  // namespace

Range RangeOf(const std::vector<double>& values) {
  if (values.empty()) return {0, 1};
  const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
  if (*lo < *hi) return {*lo, *hi};
  const double room = *lo == 0 ? 1 : std::abs(*lo) / 2;
  return {*lo - room, *lo + room};
}

Polyline Rectangle::Corners() const {
  return {{x.lo, y.lo}, {x.hi, y.lo}, {x.hi, y.hi}, {x.lo, y.hi}};
}

Polyline Clip(const Polyline& convex, const HalfPlane& half) {
  Polyline clipped;
  for (size_t i = 0; i < convex.size(); ++i) {
    const Point& from = convex[i];
    const Point& to = convex[(i + 1) % convex.size()];
    const double at_from = half.At(from);
    const double at_to = half.At(to);
    if (at_from >= 0) clipped.push_back(from);
    if ((at_from < 0 && at_to > 0) || (at_from > 0 && at_to < 0))
      clipped.push_back(Between(from, to, at_from / (at_from - at_to)));
  }
  if (clipped.size() < 3) clipped.clear();
  return clipped;
}

std::optional<std::pair<Point, Point>> Border(const HalfPlane& half, const Rectangle& window) {
  if (half.a == 0 && half.b == 0) return std::nullopt;
  std::vector<Point> on;
  const Polyline corners = window.Corners();
  for (size_t i = 0; i < corners.size(); ++i) {
    const Point& from = corners[i];
    const Point& to = corners[(i + 1) % corners.size()];
    const double at_from = half.At(from);
    const double at_to = half.At(to);
    if (at_from == 0) on.push_back(from);
    if ((at_from < 0 && at_to > 0) || (at_from > 0 && at_to < 0))
      on.push_back(Between(from, to, at_from / (at_from - at_to)));
  }
  if (on.size() < 2) return std::nullopt;
  return std::pair(on.front(), on.back());
}

double AreaOf(const Polyline& polygon) {
  double twice = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point& a = polygon[i];
    const Point& b = polygon[(i + 1) % polygon.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

Polyline Simplify(const Polyline& line, double tolerance) {
  if (line.size() < 3) return line;
  std::vector<bool> stays(line.size());
  stays.front() = stays.back() = true;
  // A closed line has no direction: it is split at the point farthest from its start.
  size_t middle = 0;
  if (line.front() == line.back()) {
    double distance = 0;
    for (size_t i = 1; i + 1 < line.size(); ++i) {
      const double of = std::hypot(line[i].x - line[0].x, line[i].y - line[0].y);
      if (of > distance) middle = i;
      distance = std::max(distance, of);
    }
    stays[middle] = true;
  }
  if (middle > 0) Keep(line, 0, middle, tolerance, stays);
  Keep(line, middle, line.size() - 1, tolerance, stays);
  Polyline simple;
  for (size_t i = 0; i < line.size(); ++i)
    if (stays[i]) simple.push_back(line[i]);
  return simple;
}

}  // namespace perceptrond::client
