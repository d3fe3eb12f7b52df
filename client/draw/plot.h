// Pictures with axes: scales with ticks at round values, a frame, titles, and a legend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/draw/geometry.h"
#include "client/draw/svg.h"

namespace perceptrond::client {

struct Tick {
  double value = 0;
  std::string label;
};

// About `wanted` ticks at most, at multiples of 1, 2 or 5 times a power of ten, with the same
// number of decimals. Labels are relative to BaseOf() if that is not 0.
std::vector<Tick> LinearTicks(Range range, int wanted);
// A round number near a short range far from 0, whose ticks would need many digits: 1,000,000 for
// 999,997 to 1,000,004. Else 0.
double BaseOf(Range range, int wanted);
// Ticks at powers of ten; over less than two decades also at 2 and 5 times those.
std::vector<Tick> LogTicks(Range range, int wanted);
// "12,000", "−0.05", "2×10⁶". A negative `decimals` is a step of that power of ten: 500,000 with -5
// is "5×10⁵".
std::string TickLabel(double value, int decimals);

// A plain value.
class Scale {
 public:
  // Maps range.lo to `from` and range.hi to `to`, in pixels.
  Scale(Range range, double from, double to, bool logarithmic = false)
      : range_(range), from_(from), to_(to), logarithmic_(logarithmic) {}

  double operator()(double value) const;
  Range range() const { return range_; }
  // The suffix of the axis title for ticks relative to a base: " − 1,000,000"; usually empty.
  std::string Base(int wanted) const;
  std::vector<Tick> Ticks(int wanted) const {
    return logarithmic_ ? LogTicks(range_, wanted) : LinearTicks(range_, wanted);
  }

 private:
  Range range_;
  double from_;
  double to_;
  bool logarithmic_;
};

// The rectangle of the plot within the picture, in pixels.
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

// Linear axes that fill the frame; y points up.
Axes MakeAxes(const Frame& frame, Range x, Range y, std::string x_title, std::string y_title);

// Gives x and y the same scale in the frame by widening the shorter range around its middle. Ranges
// whose sizes differ by more than a factor of four stay, because one would be hard to see.
void EqualUnits(const Frame& frame, Range* x, Range* y);

// DrawGround draws the background and grid lines, DrawFrame the frame with ticks and titles on top
// of the content. `x_ticks` false: no numbers and title on the x axis, for panels above another
// one.
void DrawGround(const Frame& frame, const Axes& axes, Svg* svg);
void DrawFrame(const Frame& frame, const Axes& axes, bool x_ticks, Svg* svg);

// The symbol of a legend line. kTriangle points up, kWedge down. kNone: small print without a
// symbol. kMore: the same, indented under the text of the line above.
enum class Mark { kLine, kDot, kSquare, kTriangle, kWedge, kDiamond, kRing, kArea, kMore, kNone };

struct LegendEntry {
  Mark mark = Mark::kNone;
  // A class of the style sheet in svg.cc.
  const char* style = "";
  std::string text;
};

// Draws the legend downwards from `corner`; texts are cut at `width`.
void DrawLegend(Point corner, double width, const std::vector<LegendEntry>& entries, Svg* svg);

// Draws a title and a line of small print under it.
void DrawHeading(double width, std::string_view title, std::string_view subtitle, Svg* svg);

// Draws one of kDot to kDiamond; those for labels have the area of a disc of this radius.
void DrawShape(Mark shape, Point at, double radius, const char* style, Svg* svg);

// Layout of pictures of a plane: the plot on the left, the legend on its right; in pixels.
inline constexpr double kPictureWidth = 760;
inline constexpr double kPictureHeight = 520;
inline constexpr Frame kPlaneFrame{84, 72, 440, 388};
inline constexpr Point kLegendCorner{546, 84};
inline constexpr double kLegendWidth = kPictureWidth - kLegendCorner.x - 12;

// Tolerance for simplifying lines, in pixels.
inline constexpr double kTolerance = 0.1;

}  // namespace perceptrond::client
