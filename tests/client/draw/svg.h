// What the tests of pictures share: a picture's elements, and the points that its paths draw.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/draw/pictures.h"
#include "client/draw/plot.h"
#include "tests/support/xml.h"

namespace perceptrond::testing {

using client::BoundaryPicture;
using client::Field;
using client::Frame;
using client::kPlaneFrame;
using client::Point;
using client::Polyline;
using client::Window;

// The elements of a picture; fails the test if it is not well-formed XML.
inline std::vector<XmlElement> Read(const std::string& svg) {
  const auto elements = XmlReader::Read(svg);
  EXPECT_TRUE(elements.has_value()) << svg.substr(0, 2000);
  return elements.value_or(std::vector<XmlElement>());
}

// The elements of a CSS class, in order.
inline std::vector<XmlElement> OfClass(const std::vector<XmlElement>& elements,
                                       const std::string& style) {
  std::vector<XmlElement> found;
  for (const XmlElement& element : elements) {
    const auto own = element.attributes.find("class");
    if (own != element.attributes.end() && own->second == style) found.push_back(element);
  }
  return found;
}

// The points of a path, line by line.
inline std::vector<Polyline> Lines(const XmlElement& path) {
  std::vector<Polyline> lines;
  for (const absl::string_view part :
       absl::StrSplit(path.attributes.at("d"), 'M', absl::SkipEmpty())) {
    Polyline& line = lines.emplace_back();
    for (const absl::string_view coordinates :
         absl::StrSplit(part, absl::ByAnyChar("LZ"), absl::SkipEmpty())) {
      const std::pair<std::string, std::string> numbers = absl::StrSplit(coordinates, ' ');
      Point point;
      EXPECT_TRUE(absl::SimpleAtod(numbers.first, &point.x));
      EXPECT_TRUE(absl::SimpleAtod(numbers.second, &point.y));
      line.push_back(point);
    }
  }
  return lines;
}

// An attribute that is a number.
inline double Attribute(const XmlElement& element, const std::string& name) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(element.attributes.at(name), &value)) << name;
  return value;
}

// The score 2 x - y + 1 in [-3, 3]^2.
inline BoundaryPicture Plane() {
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

// Where a point of the plane is drawn.
inline Point InPicture(const Window& window, Point at) {
  const Frame& frame = kPlaneFrame;
  return {frame.left + (at.x - window.x.lo) / window.x.size() * frame.width,
          frame.bottom() - (at.y - window.y.lo) / window.y.size() * frame.height};
}

}  // namespace perceptrond::testing
