// Half-planes, contours and simplification against what geometry says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "client/draw/geometry.h"

namespace perceptrond::client {
namespace {

constexpr double kPi = 3.14159265358979;

Field MakeField(const Window& window, size_t points, const std::function<double(Point)>& value) {
  Field field{window, points, points + 3, {}};
  for (size_t row = 0; row < field.rows; ++row) {
    for (size_t column = 0; column < field.columns; ++column)
      field.values.push_back(value({field.x(column), field.y(row)}));
  }
  return field;
}

TEST(HalfPlane, ClipsASquareToTheAreaThatLiesWithin) {
  const Window unit{{0, 1}, {0, 1}};
  EXPECT_NEAR(AreaOf(Clip(unit.Corners(), {1, 1, -1})), 0.5, 1e-12);      // x + y >= 1
  EXPECT_NEAR(AreaOf(Clip(unit.Corners(), {-1, 0, 0.25})), 0.25, 1e-12);  // x <= 1/4
  EXPECT_NEAR(AreaOf(Clip(unit.Corners(), {1, 0, 1})), 1, 1e-12);
  EXPECT_TRUE(Clip(unit.Corners(), {1, 0, -2}).empty());
  // All of it or nothing, where the half-plane is none.
  EXPECT_NEAR(AreaOf(Clip(unit.Corners(), {0, 0, 1})), 1, 1e-12);
  EXPECT_TRUE(Clip(unit.Corners(), {0, 0, -1}).empty());
}

// By lot: the share of random points within is the share of the area.
TEST(HalfPlane, RandomClipsHaveTheAreaThatLotsFind) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const Window window{{-1, 1}, {-1, 1}};
  for (int n = 0; n < 30; ++n) {
    std::vector<HalfPlane> halves(4);
    Polyline region = window.Corners();
    for (HalfPlane& half : halves) {
      half = {uniform(random), uniform(random), 0.4 * uniform(random)};
      region = Clip(region, half);
    }
    int within = 0;
    constexpr int kLots = 20'000;
    for (int i = 0; i < kLots; ++i) {
      const Point point{uniform(random), uniform(random)};
      bool in = true;
      for (const HalfPlane& half : halves) in = in && half.At(point) >= 0;
      within += in ? 1 : 0;
    }
    EXPECT_NEAR(AreaOf(region) / 4, static_cast<double>(within) / kLots, 0.015);
  }
}

TEST(HalfPlane, ABorderCrossesTheWindowWhereItsEquationIsZero) {
  const Window window{{-2, 3}, {-1, 4}};
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(-3, 3);
  int crossed = 0;
  for (int n = 0; n < 500; ++n) {
    const HalfPlane half{uniform(random), uniform(random), uniform(random)};
    const auto border = Border(half, window);
    bool positive = false;
    bool negative = false;
    for (const Point corner : window.Corners()) {
      positive = positive || half.At(corner) > 0;
      negative = negative || half.At(corner) < 0;
    }
    ASSERT_EQ(border.has_value(), positive && negative);
    if (!border.has_value()) continue;
    ++crossed;
    for (const Point end : {border->first, border->second}) {
      EXPECT_NEAR(half.At(end), 0, 1e-9);
      const bool on_side = std::abs(end.x + 2) < 1e-9 || std::abs(end.x - 3) < 1e-9 ||
                           std::abs(end.y + 1) < 1e-9 || std::abs(end.y - 4) < 1e-9;
      EXPECT_TRUE(on_side);
    }
  }
  EXPECT_GT(crossed, 200);
  EXPECT_FALSE(Border({0, 0, 1}, window).has_value());
}

// w = (2, -1), offset 1: y = 2 x + 1, which crosses the axes at (0, 1) and (-1/2, 0).
TEST(Contour, OfALinearScoreIsTheBoundaryThatTheWeightsSay) {
  const Field field = MakeField({{-3, 3}, {-3, 3}}, 40, [](Point p) { return 2 * p.x - p.y + 1; });
  for (const double score : {0.0, 1.5, -1.5}) {
    const std::vector<Polyline> lines = Contours(field, score);
    ASSERT_EQ(lines.size(), 1U);
    for (const Point point : lines[0]) EXPECT_NEAR(2 * point.x - point.y + 1, score, 1e-9);
    // One straight line from border to border.
    const Polyline simple = Simplify(lines[0], 1e-6);
    ASSERT_EQ(simple.size(), 2U);
    EXPECT_NEAR(std::abs(simple[0].y), 3, 1e-9);
    EXPECT_NEAR(std::abs(simple[1].y), 3, 1e-9);
  }
  EXPECT_TRUE(Contours(field, 100).empty());
}

TEST(Field, IsLinearIfItIsAPlaneButForFloat32) {
  const auto rounded = [](Point p) {
    return static_cast<double>(static_cast<float>(0.3 * p.x - 7 * p.y + 2));
  };
  const auto linear = AsLinear(MakeField({{-1, 3}, {2, 4}}, 20, rounded));
  ASSERT_TRUE(linear.has_value());
  EXPECT_NEAR(linear->a, 0.3, 1e-5);
  EXPECT_NEAR(linear->b, -7, 1e-5);
  EXPECT_NEAR(linear->c, 2, 1e-4);
  EXPECT_FALSE(AsLinear(MakeField({{-1, 3}, {2, 4}}, 20, [](Point p) {
                 return p.x - p.y + 0.001 * p.x * p.y;
               })).has_value());
}

TEST(Contour, OfARandomLinearScoreShadesTheSideThatIsPositive) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const Window window{{-1, 1}, {-1, 1}};
  for (int n = 0; n < 100; ++n) {
    const HalfPlane half{uniform(random), uniform(random), uniform(random)};
    const Field field = MakeField(window, 25, [&](Point p) { return half.At(p); });
    const std::vector<Polyline> areas = AreasAbove(field, 0);
    double area = 0;
    for (const Polyline& one : areas) area += AreaOf(one);
    EXPECT_NEAR(area, AreaOf(Clip(window.Corners(), half)), 1e-9);
  }
}

TEST(Contour, OfACircleIsOneClosedLineOfItsLengthAndArea) {
  const Field field =
      MakeField({{-2, 2}, {-2, 2}}, 160, [](Point p) { return 1 - p.x * p.x - p.y * p.y; });
  const std::vector<Polyline> lines = Contours(field, 0);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].front(), lines[0].back());
  EXPECT_NEAR(AreaOf(lines[0]), kPi, 2e-3);
  const std::vector<Polyline> areas = AreasAbove(field, 0);
  ASSERT_EQ(areas.size(), 1U);
  EXPECT_NEAR(AreaOf(areas[0]), kPi, 2e-3);
  // What is outside has the circle as a hole: by the even-odd rule two closed lines.
  Field outside = field;
  for (double& value : outside.values) value = -value;
  double twice = 0;
  for (const Polyline& area : AreasAbove(outside, 0)) twice += AreaOf(area);
  EXPECT_NEAR(twice, 16 + kPi, 2e-3);
}

// XOR with x1 x2: the score changes its sign at both axes, and each pair of quarters is one side.
TEST(Contour, OfXorIsBothAxes) {
  const Field field = MakeField({{-1, 1}, {-1, 1}}, 40, [](Point p) { return 4 * p.x * p.y; });
  double area = 0;
  for (const Polyline& one : AreasAbove(field, 0)) area += AreaOf(one);
  EXPECT_NEAR(area, 2, 0.02);
  for (const Polyline& line : Contours(field, 0)) {
    for (const Point point : line) EXPECT_LT(std::min(std::abs(point.x), std::abs(point.y)), 0.03);
  }
}

// Asks as a picture does.
void FindSignChanges(const std::function<double(Point)>& value, Field* field) {
  SignChanges sign_changes(*field);
  for (int i = 0; i < 6; ++i) {
    std::vector<double> values;
    for (const Point point : sign_changes.Points()) values.push_back(value(point));
    sign_changes.SetValues(values);
  }
  sign_changes.Finish(field);
}

// A gate: it says 1 above 2 x + 3 y = 1 and -1 below. Without asking in between, the line would be
// a staircase.
TEST(SignChanges, TheBoundaryOfAStepIsTheLineWhereItSteps) {
  const auto step = [](Point p) { return 2 * p.x + 3 * p.y > 1 ? 1.0 : -1.0; };
  Field field = MakeField({{-3, 3}, {-3, 3}}, 40, step);
  const auto furthest = [&] {
    double off = 0;
    for (const Polyline& line : Contours(field, 0)) {
      for (const Point point : line)
        off = std::max(off, std::abs(2 * point.x + 3 * point.y - 1) / std::sqrt(13));
    }
    return off;
  };
  EXPECT_GT(furthest(), 0.02);
  FindSignChanges(step, &field);
  EXPECT_TRUE(field.discontinuous);
  EXPECT_LT(furthest(), 6.0 / 39 / 64);
  // The areas end there, too.
  double area = 0;
  for (const Polyline& one : AreasAbove(field, std::numeric_limits<double>::min()))
    area += AreaOf(one);
  EXPECT_NEAR(area, AreaOf(Clip(field.window.Corners(), {2, 3, -1})), 0.02);
}

TEST(SignChanges, WhereNothingSaysAnythingIsASideOfItsOwn) {
  const auto value = [](Point p) { return p.x > 0.501 ? 1.0 : p.x < -0.333 ? -1.0 : 0.0; };
  Field field = MakeField({{-1, 1}, {-1, 1}}, 20, value);
  FindSignChanges(value, &field);
  double above = 0;
  for (const Polyline& one : AreasAbove(field, std::numeric_limits<double>::min()))
    above += AreaOf(one);
  EXPECT_NEAR(above, 2 * (1 - 0.501), 0.01);
  for (double& one : field.values) one = -one;
  double below = 0;
  for (const Polyline& one : AreasAbove(field, std::numeric_limits<double>::min()))
    below += AreaOf(one);
  EXPECT_NEAR(below, 2 * (1 - 0.333), 0.01);
}

TEST(SignChanges, ACurveIsFollowedMoreCloselyAndDoesNotJump) {
  const auto circle = [](Point p) { return 1 - p.x * p.x - p.y * p.y; };
  Field field = MakeField({{-2, 2}, {-2, 2}}, 12, circle);
  const auto furthest = [&] {
    double off = 0;
    for (const Polyline& line : Contours(field, 0)) {
      for (const Point point : line)
        off = std::max(off, std::abs(std::hypot(point.x, point.y) - 1));
    }
    return off;
  };
  const double before = furthest();
  FindSignChanges(circle, &field);
  EXPECT_FALSE(field.discontinuous);
  EXPECT_LT(furthest(), before);
  EXPECT_LT(furthest(), 4.0 / 11 / 64);
}

// Every point of a random field is on the side of the areas that its value says.
TEST(Contour, AreasHoldExactlyThePointsThatAreAbove) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  for (int n = 0; n < 20; ++n) {
    const Field field = MakeField({{0, 1}, {0, 2}}, 12, [&](Point) { return normal(random); });
    const std::vector<Polyline> areas = AreasAbove(field, 0.1);
    const auto within = [&](Point p) {
      bool odd = false;
      for (const Polyline& area : areas) {
        for (size_t i = 0; i + 1 < area.size(); ++i) {
          const Point a = area[i];
          const Point b = area[i + 1];
          if ((a.y > p.y) == (b.y > p.y)) continue;
          if (p.x < a.x + (p.y - a.y) / (b.y - a.y) * (b.x - a.x)) odd = !odd;
        }
      }
      return odd;
    };
    for (size_t row = 1; row + 1 < field.rows; ++row) {
      for (size_t column = 1; column + 1 < field.columns; ++column) {
        EXPECT_EQ(within({field.x(column), field.y(row)}), field.at(column, row) >= 0.1);
      }
    }
    for (const Polyline& area : areas) EXPECT_EQ(area.front(), area.back());
  }
}

TEST(Simplify, LeavesNoPointFurtherAwayThanAllowedAndTheEndsWhereTheyAre) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Polyline line;
  for (int i = 0; i <= 300; ++i)
    line.push_back({i / 100.0, std::sin(i / 40.0) + 0.002 * uniform(random)});
  const Polyline simple = Simplify(line, 0.01);
  EXPECT_LT(simple.size(), 40U);
  EXPECT_EQ(simple.front(), line.front());
  EXPECT_EQ(simple.back(), line.back());
  for (const Point point : line) {
    double nearest = HUGE_VAL;
    for (size_t i = 0; i + 1 < simple.size(); ++i) {
      const Point a = simple[i];
      const Point b = simple[i + 1];
      const double squared = std::pow(b.x - a.x, 2) + std::pow(b.y - a.y, 2);
      const double t = std::clamp(
          ((point.x - a.x) * (b.x - a.x) + (point.y - a.y) * (b.y - a.y)) / squared, 0.0, 1.0);
      nearest = std::min(
          nearest, std::hypot(point.x - a.x - t * (b.x - a.x), point.y - a.y - t * (b.y - a.y)));
    }
    EXPECT_LE(nearest, 0.01 + 1e-12);
  }
}

TEST(Simplify, AClosedLineKeepsItsArea) {
  Polyline circle;
  for (int i = 0; i < 1000; ++i)
    circle.push_back({std::cos(2 * kPi * i / 1000), std::sin(2 * kPi * i / 1000)});
  circle.push_back(circle.front());
  const Polyline simple = Simplify(circle, 0.001);
  EXPECT_LT(simple.size(), 150U);
  EXPECT_NEAR(AreaOf(simple), kPi, 0.01);
}

}  // namespace
}  // namespace perceptrond::client
