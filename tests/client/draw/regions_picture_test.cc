// The picture of several classes: each area has the style of the class predicted there, and the
// boundaries lie where the two largest scores are equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
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
using ::testing::Not;
using testing::OfClass;
using testing::Read;
using testing::XmlElement;

// The scores -x, x and y of classes 0, 1 and 2 in [-3, 3]^2.
RegionsPicture Three() {
  RegionsPicture picture;
  picture.title = "three";
  picture.x_title = "x";
  picture.y_title = "y";
  picture.window = {{-3, 3}, {-3, 3}};
  for (const int number : {0, 1, 2}) {
    RegionsPicture::Class& one = picture.classes.emplace_back();
    one.number = number;
    one.name = std::array{"left", "right", "above"}[static_cast<size_t>(number)];
    Field& field = one.margin;
    field.window = picture.window;
    // Even: no point of the grid is on a boundary.
    field.columns = field.rows = 32;
    for (size_t row = 0; row < field.rows; ++row) {
      for (size_t column = 0; column < field.columns; ++column) {
        const double x = field.x(column);
        std::array<double, 3> scores = {-x, x, field.y(row)};
        const double own = scores[static_cast<size_t>(number)];
        std::sort(scores.begin(), scores.end());
        field.values.push_back(own == scores[2] ? own - scores[1] : own - scores[2]);
      }
    }
  }
  return picture;
}

double Area(const XmlElement& path) {
  double area = 0;
  for (const Polyline& line : Lines(path)) area += AreaOf(line);
  return area;
}

TEST(RegionsPicture, EachClassHasTheAreaWhereItsScoreIsLargest) {
  const std::vector<XmlElement> elements = Read(Draw(Three()));
  const double plot = kPlaneFrame.width * kPlaneFrame.height;
  // Above |x| a quarter of the square, and the rest is halved.
  const std::array<double, 3> shares = {0.375, 0.375, 0.25};
  for (size_t k = 0; k < 3; ++k) {
    const auto sides = OfClass(elements, "class-" + std::to_string(k + 1) + " side");
    // And the legend's, since there are no examples.
    ASSERT_EQ(sides.size(), 2U);
    EXPECT_NEAR(Area(sides[0]) / plot, shares[k], 0.002);
  }
}

TEST(RegionsPicture, BoundariesAreWhereTheTwoLargestScoresAreEqual) {
  const RegionsPicture picture = Three();
  const auto boundaries = OfClass(Read(Draw(picture)), "boundary");
  // And the legend's.
  ASSERT_EQ(boundaries.size(), 2U);
  const Point center = InPicture(picture.window, {0, 0});
  const double unit_x = kPlaneFrame.width / 6;
  const double unit_y = kPlaneFrame.height / 6;
  for (const Polyline& line : Lines(boundaries[0])) {
    for (const Point at : line) {
      const double x = (at.x - center.x) / unit_x;
      const double y = (center.y - at.y) / unit_y;
      // Within the cell of the point where three classes meet, lines are cut short.
      EXPECT_NEAR(y > 0 ? std::abs(x) - y : x, 0, 0.2) << x << " " << y;
    }
  }
}

TEST(RegionsPicture, ExamplesHaveTheShapeAndColourOfTheirClassAndMistakesAreRinged) {
  RegionsPicture picture = Three();
  picture.examples = {{{-2, 0}, 0, false},
                      {{2, 0}, 1, false},
                      {{0, 2}, 2, false},
                      {{1, 2}, 1, true},
                      {{0, 0}, -1, false}};
  const std::string svg = Draw(picture);
  const std::vector<XmlElement> elements = Read(svg);
  // The legend has one more of each.
  const auto discs = OfClass(elements, "class-1 mark");
  ASSERT_EQ(discs.size(), 2U);
  EXPECT_EQ(discs[0].name, "circle");
  EXPECT_NEAR(Attribute(discs[0], "cx"), InPicture(picture.window, {-2, 0}).x, 0.01);
  const auto squares = OfClass(elements, "class-2 mark");
  ASSERT_EQ(squares.size(), 3U);
  EXPECT_EQ(squares[0].name, "rect");
  const auto triangles = OfClass(elements, "class-3 mark");
  ASSERT_EQ(triangles.size(), 2U);
  EXPECT_EQ(triangles[0].name, "path");
  EXPECT_EQ(OfClass(elements, "unlabelled").size(), 2U);
  EXPECT_EQ(OfClass(elements, "wrong").size(), 2U);
  for (const char* text : {"left", "right", "above", "without a label", "misclassified: 1"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST(RegionsPicture, ClassesWithoutAColourAreGrey) {
  RegionsPicture picture = Three();
  picture.other_classes = 1;
  picture.examples = {{{1, 1}, 17, true}};
  const std::string svg = Draw(picture);
  EXPECT_THAT(svg, HasSubstr("1 other class<"));
  EXPECT_THAT(svg, HasSubstr("1 example of 4 classes"));
  const auto grey = OfClass(Read(svg), "unlabelled");
  ASSERT_EQ(grey.size(), 2U);
  EXPECT_EQ(grey[0].name, "circle");
  EXPECT_THAT(svg, Not(HasSubstr("without a label")));
}

TEST(RegionsPicture, AClassThatIsNotPredictedHasNoAreaButItsExamples) {
  RegionsPicture picture = Three();
  picture.classes[1].margin = Field();
  picture.examples = {{{2, 0}, 1, true}};
  const std::vector<XmlElement> elements = Read(Draw(picture));
  EXPECT_TRUE(OfClass(elements, "class-2 side").empty());
  EXPECT_EQ(OfClass(elements, "class-2 mark").size(), 2U);
}

}  // namespace
}  // namespace perceptrond::client
