// Learning curves against what their definition says of any number of revisions.
#include "core/convergence/curve_points.h"

#include <bit>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

LearningCurvePoint At(uint64_t revision) {
  LearningCurvePoint point;
  point.set_revision(static_cast<int64_t>(revision));
  point.set_examples(2 * revision);
  point.set_mistakes(revision);
  point.set_weight_norm(1);
  return point;
}

// The history that was stored with these points.
std::optional<CurvePoints> Stored(uint64_t spacing, const std::vector<LearningCurvePoint>& points) {
  ::perceptron::storage::v1::LearningCurve stored;
  stored.set_spacing(spacing);
  stored.mutable_points()->Add(points.begin(), points.end());
  return CurvePoints::From(stored);
}

// The least power of two of which there are at most kMaxPoints multiples up to `revisions`.
uint64_t ExpectedSpacing(uint64_t revisions) {
  return std::bit_ceil(revisions / (CurvePoints::kMaxPoints + 1) + 1);
}

void ExpectEveryMultiple(const CurvePoints& history, uint64_t revisions) {
  const uint64_t spacing = ExpectedSpacing(revisions);
  ASSERT_EQ(history.spacing(), spacing) << revisions;
  ASSERT_EQ(history.points().size(), revisions / spacing) << revisions;
  for (size_t i = 0; i < history.points().size(); ++i)
    ASSERT_EQ(static_cast<uint64_t>(history.points()[i].revision()), (i + 1) * spacing)
        << revisions;
}

TEST(CurvePoints, HoldsEveryMultipleOfTheLeastSpacingThatFits) {
  CurvePoints history;
  for (uint64_t revision = 1; revision <= 20'000; ++revision) {
    history.Add(At(revision));
    ASSERT_LE(history.points().size(), CurvePoints::kMaxPoints);
    if (revision < 1100 || revision % 97 == 0) ExpectEveryMultiple(history, revision);
  }
  // Far from few, and so never a coarse curve.
  EXPECT_GE(history.points().size(), CurvePoints::kMaxPoints / 2);
}

TEST(CurvePoints, GoesOnAfterItWasAwayAsIfItHadNeverBeen) {
  std::mt19937 random(1);
  CurvePoints stayed;
  CurvePoints away;
  for (uint64_t revision = 1; revision <= 5'000; ++revision) {
    EXPECT_EQ(away.Wants(revision), stayed.Wants(revision));
    EXPECT_EQ(away.Add(At(revision)), stayed.Add(At(revision)));
    if (random() % 50 == 0) away = CurvePoints::From(away.ToStorage()).value();
  }
  ExpectEveryMultiple(away, 5'000);
}

TEST(CurvePoints, TakesARevisionOnceAndInOrder) {
  CurvePoints history;
  EXPECT_TRUE(history.Add(At(3)));
  EXPECT_FALSE(history.Wants(3));
  EXPECT_FALSE(history.Add(At(3)));
  EXPECT_FALSE(history.Add(At(2)));
  EXPECT_TRUE(history.Add(At(4)));
  EXPECT_EQ(history.points().size(), 2U);
}

TEST(CurvePoints, WhatIsNoHistoryIsNotTaken) {
  EXPECT_TRUE(Stored(1, {}).has_value());
  EXPECT_TRUE(Stored(4, {At(4), At(12)}).has_value());
  EXPECT_FALSE(Stored(0, {}).has_value());
  EXPECT_FALSE(Stored(3, {At(3)}).has_value());
  EXPECT_FALSE(Stored(4, {At(4), At(6)}).has_value());
  EXPECT_FALSE(Stored(1, {At(2), At(2)}).has_value());
  EXPECT_FALSE(Stored(1, {At(2), At(1)}).has_value());
  EXPECT_FALSE(Stored(1, {At(0)}).has_value());
  std::vector<LearningCurvePoint> many;
  for (uint64_t revision = 1; revision <= CurvePoints::kMaxPoints + 1; ++revision)
    many.push_back(At(revision));
  EXPECT_FALSE(Stored(1, many).has_value());
  many.pop_back();
  EXPECT_TRUE(Stored(1, many).has_value());
}

TEST(CurvePoints, FiguresThatAreNoneAreNotTaken) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, -1.0, std::numeric_limits<double>::infinity()}) {
    LearningCurvePoint norm = At(1);
    norm.set_weight_norm(bad);
    LearningCurvePoint ceiling = At(1);
    ceiling.set_margin_ceiling(bad);
    LearningCurvePoint floor = At(1);
    floor.set_margin_floor(bad);
    LearningCurvePoint error = At(1);
    error.set_window_error(bad);
    for (const LearningCurvePoint& point : {norm, ceiling, floor, error}) {
      EXPECT_FALSE(IsSound(point));
      CurvePoints history;
      EXPECT_FALSE(history.Add(point));
      EXPECT_FALSE(Stored(1, {point}).has_value());
    }
  }
  LearningCurvePoint counts = At(1);
  counts.set_mistakes(counts.examples() + 1);
  EXPECT_FALSE(IsSound(counts));
}

}  // namespace
}  // namespace perceptrond
