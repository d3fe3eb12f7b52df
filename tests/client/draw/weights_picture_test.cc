// The picture of the plane of weights: the lines of the examples, and the region where all of them
// are correct.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "client/draw/pictures.h"
#include "tests/client/draw/svg.h"

namespace perceptrond::client {
namespace {

using testing::Attribute;
using ::testing::HasSubstr;
using testing::InPicture;
using testing::Lines;
using testing::OfClass;
using testing::Read;
using testing::XmlElement;

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

}  // namespace
}  // namespace perceptrond::client
