// What pictures with axes share: a frame with round ticks, titles, and a legend beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/draw/scale.h"
#include "client/draw/svg.h"

namespace perceptrond::client {

// Where the plot lies in its picture, in pixels.
struct Frame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

struct Axes {
  Scale x;
  Scale y;
  std::string x_title;
  std::string y_title;

  Point operator()(Point point) const { return {x(point.x), y(point.y)}; }
  Polyline operator()(const Polyline& line) const;
};

// Linear axes that fill the frame, y upwards.
Axes MakeAxes(const Frame& frame, Range x, Range y, std::string x_title, std::string y_title);

// How wide a window must be so that the units of x and y are as long as each other in a frame of
// that shape: the shorter range grows around its middle. Ranges whose sizes differ by more than
// four times stay, since one of them would be hard to see.
void EqualUnits(const Frame& frame, Range* x, Range* y);

// The ground and its grid lines; then, over what was drawn, the frame with ticks and titles.
// `x_ticks` false: the ticks of x go without numbers and title, for panels that stand on another.
void DrawGround(const Frame& frame, const Axes& axes, Svg* svg);
void DrawFrame(const Frame& frame, const Axes& axes, bool x_ticks, Svg* svg);

// What a line of the legend shows before its text. kMore: nothing, and goes on under the text of
// the line above, in small print as kNone.
enum class Mark { kLine, kDot, kSquare, kDiamond, kRing, kArea, kMore, kNone };

struct LegendEntry {
  Mark mark = Mark::kNone;
  // Of svg.cc's style sheet.
  const char* style = "";
  std::string text;
};

// Downwards from `corner`, texts cut at `width`.
void DrawLegend(Point corner, double width, const std::vector<LegendEntry>& entries, Svg* svg);

// The picture's heading: a title, and a line of small print under it.
void DrawHeading(double width, std::string_view title, std::string_view subtitle, Svg* svg);

// The mark of an example: a disc for +1, a square for -1, a diamond without a label.
void DrawExample(Point at, int label, double radius, Svg* svg);

inline constexpr double kPictureWidth = 760;
inline constexpr double kPictureHeight = 520;
inline constexpr Frame kPlaneFrame{84, 72, 440, 388};
inline constexpr Point kLegendCorner{546, 84};
inline constexpr double kLegendWidth = kPictureWidth - kLegendCorner.x - 12;

// What is closer than this cannot be told apart, in pixels.
inline constexpr double kTolerance = 0.1;

}  // namespace perceptrond::client
