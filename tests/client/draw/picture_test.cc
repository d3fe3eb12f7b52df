// Every picture is a well-formed document, whatever its texts are; its numbers and texts are short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/draw/pictures.h"
#include "client/draw/plot.h"
#include "tests/client/draw/svg.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;
using testing::Plane;
using testing::Read;
using testing::XmlElement;

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
  const std::string cut = Shorten(absl::StrCat(std::string(50, 'x'), "\xC3\xA4\xC3\xA4"), 13, 100);
  EXPECT_LE(TextWidth(cut, 13), 100);
  EXPECT_THAT(cut, ::testing::EndsWith("x…"));
  const std::string umlauts = Shorten("äääääääääääääääääääääää", 13, 60);
  EXPECT_EQ((umlauts.size() - 3) % 2, 0U);
}

}  // namespace
}  // namespace perceptrond::client
