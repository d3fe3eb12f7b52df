// The picture of a decision boundary: boundary, margins and examples are drawn where the weights
// say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "client/draw/pictures.h"
#include "client/draw/plot.h"
#include "tests/client/draw/svg.h"

namespace perceptrond::client {
namespace {

using testing::Attribute;
using ::testing::HasSubstr;
using testing::InPicture;
using testing::Lines;
using testing::OfClass;
using testing::Plane;
using testing::Read;
using testing::XmlElement;

TEST(BoundaryPicture, TheBoundaryAndTheMarginsCrossTheAxesWhereTheWeightsSay) {
  BoundaryPicture picture = Plane();
  picture.margin_score = 1.5;
  picture.margin_text = "margin";
  const std::vector<XmlElement> elements = Read(Draw(picture));
  // On each line 2 x - y + 1 is its score: its ends are known at the window's borders.
  const auto expect = [&](const XmlElement& path, double score) {
    const std::vector<Polyline> lines = Lines(path);
    ASSERT_EQ(lines.size(), 1U);
    ASSERT_EQ(lines[0].size(), 2U);
    const Point low = InPicture(picture.scores.window, {(score - 4) / 2, -3});
    const Point high = InPicture(picture.scores.window, {(score + 2) / 2, 3});
    const bool upwards = lines[0][0].y > lines[0][1].y;
    EXPECT_NEAR(lines[0][upwards ? 0 : 1].x, low.x, 0.02);
    EXPECT_NEAR(lines[0][upwards ? 1 : 0].x, high.x, 0.02);
    EXPECT_NEAR(lines[0][upwards ? 0 : 1].y, low.y, 0.02);
  };
  // The first of each class is the line, the second the legend's.
  const auto boundary = OfClass(elements, "boundary");
  ASSERT_EQ(boundary.size(), 2U);
  expect(boundary[0], 0);
  const auto margin = OfClass(elements, "margin");
  ASSERT_EQ(margin.size(), 3U);
  expect(margin[0], 1.5);
  expect(margin[1], -1.5);
}

TEST(BoundaryPicture, ExamplesAreDrawnAtTheirCoordinatesByLabelAndMistakesAreRinged) {
  BoundaryPicture picture = Plane();
  picture.examples = {
      {{0, 0}, 1, false}, {{-2, 1}, 1, true}, {{1, 2}, -1, true}, {{2, -2}, 0, false}};
  const std::vector<XmlElement> elements = Read(Draw(picture));
  // The legend has one more of each.
  const auto discs = OfClass(elements, "positive");
  ASSERT_EQ(discs.size(), 3U);
  const Point at = InPicture(picture.scores.window, {-2, 1});
  EXPECT_NEAR(Attribute(discs[1], "cx"), at.x, 0.01);
  EXPECT_NEAR(Attribute(discs[1], "cy"), at.y, 0.01);
  const auto squares = OfClass(elements, "negative");
  ASSERT_EQ(squares.size(), 2U);
  EXPECT_EQ(squares[0].name, "rect");
  EXPECT_EQ(OfClass(elements, "unlabelled").size(), 2U);
  const auto rings = OfClass(elements, "wrong");
  ASSERT_EQ(rings.size(), 3U);
  EXPECT_NEAR(Attribute(rings[0], "cx"), at.x, 0.01);
}

// However many are wrong at a place, their rings do not hide what is there; a lone one is seen.
TEST(BoundaryPicture, RingsOfManyLetThroughWhatTheySurround) {
  BoundaryPicture picture = Plane();
  for (int i = 0; i < 1000; ++i) picture.examples.push_back({{1, 1}, i % 2 == 0 ? 1 : -1, true});
  picture.examples.push_back({{-2, -2}, 1, true});
  const auto rings = OfClass(Read(Draw(picture)), "wrong-of-many");
  ASSERT_EQ(rings.size(), 1001U + 1);  // and the legend's
  EXPECT_LE(Attribute(rings[0], "stroke-opacity"), 0.05);
  EXPECT_EQ(Attribute(rings[1000], "stroke-opacity"), 0.75);
  EXPECT_LT(Attribute(rings[0], "r"), 4);
}

TEST(BoundaryPicture, TheLegendHasNoMarginThatThePictureHasNot) {
  BoundaryPicture picture = Plane();
  picture.margin_score = 1000;
  picture.margin_text = "far away";
  EXPECT_THAT(Draw(picture), ::testing::Not(HasSubstr("far away")));
  picture.margin_score = 1;
  EXPECT_THAT(Draw(picture), HasSubstr("far away"));
}

// The ticks' labels below the plot, by their points.
std::vector<std::pair<double, std::string>> LabelsBelow(const std::string& svg) {
  std::vector<std::pair<double, std::string>> labels;
  for (const XmlElement& text : OfClass(Read(svg), "soft")) {
    if (Attribute(text, "y") == kPlaneFrame.bottom() + 20)
      labels.emplace_back(Attribute(text, "x"), text.text);
  }
  return labels;
}

TEST(BoundaryPicture, TheTicksLabelsDoNotRunIntoEachOther) {
  for (const Range x :
       {Range{999'997, 1'000'003}, Range{-1e6 - 3, -1e6 + 3}, Range{-3.4e38, 3.4e38},
        Range{-1.234e-10, 4e-10}, Range{1.2e-7, 1.9e-7}, Range{99'999, 100'000}}) {
    BoundaryPicture picture = Plane();
    picture.scores.window.x = x;
    const auto labels = LabelsBelow(Draw(picture));
    ASSERT_GE(labels.size(), 2U) << x.lo;
    for (size_t i = 1; i < labels.size(); ++i) {
      const double half = TextWidth(labels[i - 1].second, 13) / 2;
      EXPECT_LT(labels[i - 1].first + half, labels[i].first - half) << labels[i].second;
      EXPECT_NE(labels[i - 1].second, labels[i].second);
    }
  }
}

TEST(BoundaryPicture, FarFromZeroTheTitleSaysWhatTheTicksAreRelativeTo) {
  BoundaryPicture picture = Plane();
  picture.scores.window = {{999'997, 1'000'003}, {-1'000'003, -999'997}};
  const std::string svg = Draw(picture);
  EXPECT_THAT(svg, HasSubstr(">x − 1,000,000<"));
  EXPECT_THAT(svg, HasSubstr(">y + 1,000,000<"));
}

TEST(BoundaryPicture, TheSidesAreAsLargeAsTheBoundarySays) {
  const std::vector<XmlElement> elements = Read(Draw(Plane()));
  const double pixels = kPlaneFrame.width * kPlaneFrame.height;
  const double within =
      AreaOf(Clip(Plane().scores.window.Corners(), {2, -1, 1})) / 36;  // of the window
  EXPECT_NEAR(AreaOf(Lines(OfClass(elements, "positive-side")[0])[0]) / pixels, within, 1e-3);
  EXPECT_NEAR(AreaOf(Lines(OfClass(elements, "negative-side")[0])[0]) / pixels, 1 - within, 1e-3);
}

TEST(BoundaryPicture, UnitsAreAsLongAsEachOtherUnlessThatServesNobody) {
  const Window window =
      WindowFor(std::vector<DrawnExample>{{{0, 0}, 1, false}, {{1, 3}, -1, false}});
  EXPECT_NEAR(window.x.size() / kPlaneFrame.width, window.y.size() / kPlaneFrame.height, 1e-9);
  EXPECT_LT(window.y.lo, 0);
  EXPECT_GT(window.y.hi, 3);
  const Window wide =
      WindowFor(std::vector<DrawnExample>{{{0, 0}, 1, false}, {{1000, 1}, -1, false}});
  EXPECT_LT(wide.y.size(), 2);
}

}  // namespace
}  // namespace perceptrond::client
