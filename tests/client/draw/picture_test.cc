// Pictures as documents: well formed whatever they are given, and what they show lies where theory
// says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/draw/boundary.h"
#include "client/draw/learning_curve.h"
#include "client/draw/plot.h"
#include "client/draw/weights.h"
#include "tests/support/xml.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;
using testing::XmlElement;
using testing::XmlReader;

std::vector<XmlElement> Read(const std::string& svg) {
  const auto elements = XmlReader::Read(svg);
  EXPECT_TRUE(elements.has_value()) << svg.substr(0, 2000);
  return elements.value_or(std::vector<XmlElement>());
}

std::vector<XmlElement> OfClass(const std::vector<XmlElement>& elements, const std::string& style) {
  std::vector<XmlElement> found;
  for (const XmlElement& element : elements) {
    const auto own = element.attributes.find("class");
    if (own != element.attributes.end() && own->second == style) found.push_back(element);
  }
  return found;
}

// The points of a path, line by line.
std::vector<Polyline> Lines(const XmlElement& path) {
  std::vector<Polyline> lines;
  for (const absl::string_view part :
       absl::StrSplit(path.attributes.at("d"), 'M', absl::SkipEmpty())) {
    Polyline& line = lines.emplace_back();
    for (const absl::string_view place :
         absl::StrSplit(part, absl::ByAnyChar("LZ"), absl::SkipEmpty())) {
      const std::pair<std::string, std::string> numbers = absl::StrSplit(place, ' ');
      Point point;
      EXPECT_TRUE(absl::SimpleAtod(numbers.first, &point.x));
      EXPECT_TRUE(absl::SimpleAtod(numbers.second, &point.y));
      line.push_back(point);
    }
  }
  return lines;
}

double Attribute(const XmlElement& element, const std::string& name) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(element.attributes.at(name), &value)) << name;
  return value;
}

// The score 2 x - y + 1 in [-3, 3]^2.
BoundaryPicture Plane() {
  BoundaryPicture picture;
  picture.title = "plane";
  picture.x_title = "x";
  picture.y_title = "y";
  picture.negative = "no";
  picture.positive = "yes";
  Field& field = picture.scores;
  field.window = {{-3, 3}, {-3, 3}};
  field.columns = field.rows = 31;
  for (size_t row = 0; row < 31; ++row) {
    for (size_t column = 0; column < 31; ++column)
      field.values.push_back(2 * field.x(column) - field.y(row) + 1);
  }
  return picture;
}

// Where a place of the plane lies in the picture.
Point InPicture(const Window& window, Point at) {
  const Frame& frame = kPlaneFrame;
  return {frame.left + (at.x - window.x.lo) / window.x.size() * frame.width,
          frame.bottom() - (at.y - window.y.lo) / window.y.size() * frame.height};
}

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

TEST(BoundaryPicture, ExamplesLieAtTheirPlacesByLabelAndTheWrongOnesAreRinged) {
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

// Every byte, and text that would end an element or an attribute.
TEST(Pictures, AreWellFormedWhateverTheirTextsAre) {
  std::string bytes = "</text><script>&\"'>]]>";
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  bytes += "\xC0\xAF\xED\xA0\x80\xF4\x90\x80\x80\xEF\xBF\xBF ok \xE2\x82\xAC";
  BoundaryPicture picture = Plane();
  picture.title = picture.subtitle = picture.x_title = picture.y_title = bytes;
  picture.negative = picture.positive = picture.margin_text = bytes;
  picture.notes = {bytes};
  picture.examples = {{{0, 0}, 1, false}, {{1, 1}, -1, false}};
  const std::vector<XmlElement> elements = Read(Draw(picture));
  for (const XmlElement& element : elements) EXPECT_NE(element.name, "script");
  EXPECT_EQ(elements[1].name, "title");
  EXPECT_THAT(elements[1].text, HasSubstr("</text><script>&\"'>]]>"));
  EXPECT_THAT(elements[1].text, HasSubstr(" ok \xE2\x82\xAC"));
  EXPECT_EQ(elements[2].name, "desc");
  LearningCurvePicture curves;
  curves.title = curves.subtitle = bytes;
  Read(Draw(curves));
  WeightsPicture weights;
  weights.title = weights.x_title = weights.positive = bytes;
  Read(Draw(weights));
}

TEST(Pictures, HaveBothSchemes) {
  EXPECT_THAT(Draw(Plane()), HasSubstr("@media (prefers-color-scheme: dark)"));
}

// AND by the textbook: theta = (3, 2), theta_0 = -4 at the end; each example is a line through the
// weights that give it a score of 0.
WeightsPicture And() {
  WeightsPicture picture;
  picture.x_title = "w1";
  picture.y_title = "w2";
  picture.weights = {3, 2};
  const double offset = -4;
  for (const auto& [x1, x2, y] : {std::tuple{0, 0, -1}, {0, 1, -1}, {1, 0, -1}, {1, 1, 1}}) {
    picture.examples.push_back(
        {{static_cast<double>(y * x1), static_cast<double>(y * x2), y * offset}, y});
  }
  return picture;
}

// w1 < 4, w2 < 4 and w1 + w2 > 4: a triangle with its right angle at (4, 4).
TEST(WeightsPicture, TheRegionIsTheTriangleOfTheWeightsThatAreAnd) {
  const Polyline region = RightForAll(And().examples, {{-10, 10}, {-10, 10}});
  EXPECT_NEAR(AreaOf(region), 8, 1e-9);
  for (const Point corner : {Point{4, 4}, Point{0, 4}, Point{4, 0}}) {
    EXPECT_TRUE(std::any_of(region.begin(), region.end(), [&](Point point) {
      return std::hypot(point.x - corner.x, point.y - corner.y) < 1e-9;
    }));
  }
}

TEST(WeightsPicture, HasNoRegionWhereNothingSeparates) {
  std::vector<WeightsPicture::Example> contradiction;
  contradiction.push_back({{1, 0, -1}, 1});
  contradiction.push_back({{-1, 0, 1}, -1});
  EXPECT_TRUE(RightForAll(contradiction, {{-10, 10}, {-10, 10}}).empty());
  WeightsPicture picture = And();
  picture.examples.push_back({{-1, -1, 4}, -1});
  const std::string svg = Draw(picture);
  EXPECT_TRUE(OfClass(Read(svg), "region").empty());
  EXPECT_THAT(svg, HasSubstr("no weights here are correct"));
}

// (0, 0) without an offset, or both labels at one place: no weights of the plane change it.
TEST(WeightsPicture, HasNoRegionWhereAnExampleIsWrongWhateverTheWeights) {
  for (const double score : {0.0, -1.0}) {
    WeightsPicture picture = And();
    picture.examples.push_back({{0, 0, score}, 1, true});
    const std::string svg = Draw(picture);
    EXPECT_TRUE(OfClass(Read(svg), "region").empty());
    EXPECT_THAT(svg, HasSubstr("no weights here are correct"));
    EXPECT_THAT(svg, HasSubstr("1 example is wrong"));
    EXPECT_THAT(svg, HasSubstr("for any of these weights"));
    // Right by a score of 0, as -1 is: it takes nothing away.
    picture.examples.back() = {{0, 0, 0}, -1, false};
    EXPECT_EQ(OfClass(Read(Draw(picture)), "region").size(), 2U);
  }
}

TEST(WeightsPicture, WithoutExamplesHasNoRegionAndNoneInItsLegend) {
  WeightsPicture picture;
  picture.weights = {1, 2};
  const std::string svg = Draw(picture);
  EXPECT_TRUE(OfClass(Read(svg), "region").empty());
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("all correct")));
}

TEST(WeightsPicture, DrawsTheWeightsAndALineForEachExampleThatPassesTheWindow) {
  const WeightsPicture picture = And();
  const Window window = WindowFor(picture);
  const std::vector<XmlElement> elements = Read(Draw(picture));
  const auto weights = OfClass(elements, "weights");
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_NEAR(Attribute(weights[0], "cx"), InPicture(window, {3, 2}).x, 0.01);
  EXPECT_NEAR(Attribute(weights[0], "cy"), InPicture(window, {3, 2}).y, 0.01);
  // (0, 0) is right or wrong whatever the weights are: it has none.
  EXPECT_EQ(Lines(OfClass(elements, "negative-line")[0]).size(), 2U);
  EXPECT_EQ(Lines(OfClass(elements, "positive-line")[0]).size(), 1U);
}

// A tick leads from its line to where the example is right.
TEST(WeightsPicture, TicksPointToTheRightSide) {
  const WeightsPicture picture = And();
  const Window window = WindowFor(picture);
  const std::vector<XmlElement> elements = Read(Draw(picture));
  const Polyline tick = Lines(OfClass(elements, "positive-tick")[0])[0];
  const auto at = [&](Point pixel) {
    return Point{
        window.x.lo + (pixel.x - kPlaneFrame.left) / kPlaneFrame.width * window.x.size(),
        window.y.lo + (kPlaneFrame.bottom() - pixel.y) / kPlaneFrame.height * window.y.size()};
  };
  EXPECT_NEAR(picture.examples[3].right.At(at(tick[0])), 0, 0.02);
  EXPECT_GT(picture.examples[3].right.At(at(tick[1])), 0.05);
}

CurvePoint At(double revision) {
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
    picture.points.push_back(At(revision));
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
TEST(LearningCurvePicture, WhatCameBehindTheLastUpdateStandsOverIt) {
  LearningCurvePicture picture;
  for (int revision = 1; revision <= 3; ++revision) picture.points.push_back(At(revision));
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
  picture.points = {At(1), At(1)};
  picture.points.back().examples = 5000;
  const std::vector<XmlElement> elements = Read(Draw(picture));
  EXPECT_THAT(OfClass(elements, "first"), ::testing::IsEmpty());
  // Mistakes and norm, with the legend's.
  EXPECT_EQ(OfClass(elements, "first-dot").size(), 4U);
}

TEST(LearningCurvePicture, TheLegendSaysOfWhichDataTheMarginsBoundsAre) {
  LearningCurvePicture picture;
  picture.points = {At(1), At(2)};
  picture.points[0].margin_ceiling = 1;
  EXPECT_THAT(Draw(picture), HasSubstr(">of all data seen<"));
  EXPECT_THAT(Draw(picture), ::testing::Not(HasSubstr("clean pass")));
  picture.points[1].margin_floor = 0.2;
  EXPECT_THAT(Draw(picture), HasSubstr(">of the last clean pass<"));
}

TEST(LearningCurvePicture, PanelsOfWhichNothingIsKnownAreLeftOut) {
  LearningCurvePicture picture;
  picture.points = {At(1), At(2)};
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
    picture.points.push_back(At(revision * 16.0));
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

TEST(SvgText, NumbersAreShortAndFinite) {
  EXPECT_EQ(SvgNumber(3), "3");
  EXPECT_EQ(SvgNumber(-0.001), "0");
  EXPECT_EQ(SvgNumber(1.005e3), "1005");
  EXPECT_EQ(SvgNumber(2.5), "2.5");
  EXPECT_EQ(SvgNumber(INFINITY), "0");
  EXPECT_EQ(SvgNumber(NAN), "0");
}

TEST(SvgText, LongTextsEndWithDotsBetweenCharacters) {
  EXPECT_EQ(Shorten("short", 13, 100), "short");
  const std::string cut = Shorten(std::string(50, 'x') + "\xC3\xA4\xC3\xA4", 13, 100);
  EXPECT_LE(TextWidth(cut, 13), 100);
  EXPECT_THAT(cut, ::testing::EndsWith("x…"));
  const std::string umlauts = Shorten("äääääääääääääääääääääää", 13, 60);
  EXPECT_EQ((umlauts.size() - 3) % 2, 0U);
}

}  // namespace
}  // namespace perceptrond::client
