// The picture of a learning curve: each figure in its panel, with gaps where it is unknown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "client/draw/pictures.h"
#include "tests/client/draw/svg.h"

namespace perceptrond::client {
namespace {

using testing::Attribute;
using ::testing::HasSubstr;
using testing::Lines;
using testing::OfClass;
using testing::Read;
using testing::XmlElement;

CurvePoint AtRevision(double revision) {
  CurvePoint point;
  point.revision = revision;
  point.examples = 3 * revision;
  point.mistakes = revision;
  point.weight_norm = std::sqrt(revision);
  return point;
}

TEST(LearningCurvePicture, WhatIsNotKnownIsAGapAndNeverZero) {
  LearningCurvePicture picture;
  for (int revision = 1; revision <= 9; ++revision) {
    picture.points.push_back(AtRevision(revision));
    // Known at 1, 2, 3 and 7, 8, and 9 alone of the floor.
    if (revision <= 3 || revision == 7 || revision == 8)
      picture.points.back().margin_ceiling = 1.0 / revision;
    if (revision == 9) picture.points.back().margin_floor = 0.2;
  }
  const std::vector<XmlElement> elements = Read(Draw(picture));
  std::vector<size_t> lengths;
  for (const XmlElement& path : OfClass(elements, "first")) {
    for (const Polyline& line : Lines(path)) lengths.push_back(line.size());
  }
  // Mistakes with the legend's, norm, the ceiling in two parts.
  EXPECT_THAT(lengths, ::testing::ElementsAre(9, 2, 9, 2, 3, 2, 2));
  EXPECT_EQ(OfClass(elements, "second-dot").size(), 2U);  // and the legend's
}

// More examples at the last revision: what they changed is a line straight up or down over it, what
// they did not is no line.
TEST(LearningCurvePicture, ExamplesAfterTheLastUpdateAreDrawnAtItsRevision) {
  LearningCurvePicture picture;
  for (int revision = 1; revision <= 3; ++revision) picture.points.push_back(AtRevision(revision));
  for (CurvePoint& point : picture.points) point.window_error = 0.5;
  picture.points.push_back(picture.points.back());
  picture.points.back().examples = 5000;
  picture.points.back().window_error = 0;
  std::vector<Polyline> lines;
  const std::vector<XmlElement> elements = Read(Draw(picture));
  for (const XmlElement& path : OfClass(elements, "first")) {
    for (const Polyline& line : Lines(path))
      if (line.size() > 2) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].size(), 3U);
  EXPECT_EQ(lines[1].size(), 3U);
  ASSERT_EQ(lines[2].size(), 4U);
  EXPECT_EQ(lines[2][2].x, lines[2][3].x);
  EXPECT_LT(lines[2][2].y, lines[2][3].y);
}

TEST(LearningCurvePicture, OfAModelWithOneUpdateTheFiguresThatStandAreDots) {
  LearningCurvePicture picture;
  picture.points = {AtRevision(1), AtRevision(1)};
  picture.points.back().examples = 5000;
  const std::vector<XmlElement> elements = Read(Draw(picture));
  EXPECT_THAT(OfClass(elements, "first"), ::testing::IsEmpty());
  // Mistakes and norm, with the legend's.
  EXPECT_EQ(OfClass(elements, "first-dot").size(), 4U);
}

TEST(LearningCurvePicture, TheLegendSaysOfWhichDataTheMarginsBoundsAre) {
  LearningCurvePicture picture;
  picture.points = {AtRevision(1), AtRevision(2)};
  picture.points[0].margin_ceiling = 1;
  EXPECT_THAT(Draw(picture), HasSubstr(">of all data seen<"));
  EXPECT_THAT(Draw(picture), ::testing::Not(HasSubstr("clean pass")));
  picture.points[1].margin_floor = 0.2;
  EXPECT_THAT(Draw(picture), HasSubstr(">of the last clean pass<"));
}

TEST(LearningCurvePicture, PanelsOfWhichNothingIsKnownAreLeftOut) {
  LearningCurvePicture picture;
  picture.points = {AtRevision(1), AtRevision(2)};
  EXPECT_THAT(Draw(picture), ::testing::Not(HasSubstr(">margin<")));
  picture.points[0].margin_ceiling = 1;
  EXPECT_THAT(Draw(picture), HasSubstr(">margin<"));
}

TEST(LearningCurvePicture, OfAModelThatLearnedNothingIsEmptyAndWellFormed) {
  LearningCurvePicture picture;
  Read(Draw(picture));
  picture.points = {CurvePoint()};
  for (const bool logarithmic : {false, true}) {
    picture.logarithmic = logarithmic;
    Read(Draw(picture));
  }
}

TEST(LearningCurvePicture, PointsLieWithinTheirPanelsOnEitherScale) {
  LearningCurvePicture picture;
  std::mt19937 random(1);
  for (int revision = 1; revision <= 512; ++revision) {
    picture.points.push_back(AtRevision(revision * 16.0));
    picture.points.back().margin_ceiling = 5.0 / (revision * revision);
    picture.points.back().window_error = static_cast<double>(random() % 1000) / 1000;
  }
  for (const bool logarithmic : {false, true}) {
    picture.logarithmic = logarithmic;
    const std::vector<XmlElement> elements = Read(Draw(picture));
    const auto plots = OfClass(elements, "plot");
    ASSERT_EQ(plots.size(), 4U);
    size_t panel = 0;
    for (const XmlElement& path : OfClass(elements, "first")) {
      const Polyline line = Lines(path)[0];
      if (line.size() < 3) continue;  // the legend's
      const XmlElement& plot = plots[panel++];
      for (const Point point : line) {
        EXPECT_GE(point.x, Attribute(plot, "x") - 0.01);
        EXPECT_LE(point.x, Attribute(plot, "x") + Attribute(plot, "width") + 0.01);
        EXPECT_GE(point.y, Attribute(plot, "y") - 0.01);
        EXPECT_LE(point.y, Attribute(plot, "y") + Attribute(plot, "height") + 0.01);
      }
    }
    EXPECT_EQ(panel, 4U);
  }
}

}  // namespace
}  // namespace perceptrond::client
