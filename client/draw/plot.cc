#include "client/draw/plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace perceptrond::client {
namespace {

constexpr double kTickLength = 5;
// Smallest distance of ticks, in pixels.
constexpr double kTickRoomX = 70;
constexpr double kTickRoomY = 55;
constexpr int kLeastTicks = 5;
constexpr double kTickGap = 6;
constexpr double kLegendStep = 24;
constexpr double kMarkWidth = 26;
constexpr double kMarginLeft = 20;
constexpr double kMostStretch = 4;

// Whether the labels of neighbouring ticks do not overlap.
bool Fit(const std::vector<Tick>& ticks, const Scale& scale) {
  for (size_t i = 1; i < ticks.size(); ++i) {
    const double room = std::abs(scale(ticks[i].value) - scale(ticks[i - 1].value)) - kTickGap;
    const double width =
        TextWidth(ticks[i - 1].label, kTextSize) / 2 + TextWidth(ticks[i].label, kTextSize) / 2;
    if (width > room) return false;
  }
  return true;
}

int WantedX(const Frame& frame, const Scale& scale) {
  int wanted = std::max(kLeastTicks, static_cast<int>(frame.width / kTickRoomX));
  while (wanted > 1 && !Fit(scale.Ticks(wanted), scale)) --wanted;
  return wanted;
}
int WantedY(const Frame& frame) {
  return std::max(kLeastTicks, static_cast<int>(frame.height / kTickRoomY));
}

std::string Titled(const std::string& title, const std::string& base, double width) {
  return Shorten(title, kTextSize, width - TextWidth(base, kTextSize)) + base;
}

Polyline Diamond(Point at, double radius) {
  return {
      {at.x, at.y - radius}, {at.x + radius, at.y}, {at.x, at.y + radius}, {at.x - radius, at.y}};
}

void DrawMark(Point at, const LegendEntry& entry, Svg* svg) {
  const double middle = at.x + kMarkWidth / 2;
  switch (entry.mark) {
    case Mark::kLine:
      return svg->Line({at.x, at.y}, {at.x + kMarkWidth, at.y}, entry.style);
    case Mark::kDot:
      return svg->Circle({middle, at.y}, 5, entry.style);
    case Mark::kSquare:
      return svg->Rectangle({middle - 4.5, at.y - 4.5}, 9, 9, entry.style);
    case Mark::kDiamond:
      return svg->Areas({Diamond({middle, at.y}, 6)}, entry.style);
    case Mark::kRing:
      return svg->Circle({middle, at.y}, 8, entry.style);
    case Mark::kArea:
      return svg->Rectangle({at.x, at.y - 7}, kMarkWidth, 14, entry.style);
    case Mark::kMore:
    case Mark::kNone:
      return;
  }
}

}  // namespace

Polyline Axes::operator()(const Polyline& line) const {
  Polyline drawn;
  for (const Point& point : line) drawn.push_back((*this)(point));
  return drawn;
}

Axes MakeAxes(const Frame& frame, Range x, Range y, std::string x_title, std::string y_title) {
  return {Scale(x, frame.left, frame.right()), Scale(y, frame.bottom(), frame.top),
          std::move(x_title), std::move(y_title)};
}

void EqualUnits(const Frame& frame, Range* x, Range* y) {
  if (x->size() > kMostStretch * y->size() || y->size() > kMostStretch * x->size()) return;
  const double unit = std::max(x->size() / frame.width, y->size() / frame.height);
  const auto grow = [unit](double pixels, Range* range) {
    const double middle = range->middle();
    *range = {middle - unit * pixels / 2, middle + unit * pixels / 2};
  };
  grow(frame.width, x);
  grow(frame.height, y);
}

void DrawGround(const Frame& frame, const Axes& axes, Svg* svg) {
  svg->Rectangle({frame.left, frame.top}, frame.width, frame.height, "plot");
  std::vector<Polyline> lines;
  for (const Tick& tick : axes.x.Ticks(WantedX(frame, axes.x))) {
    const double x = axes.x(tick.value);
    lines.push_back({{x, frame.top}, {x, frame.bottom()}});
  }
  for (const Tick& tick : axes.y.Ticks(WantedY(frame))) {
    const double y = axes.y(tick.value);
    lines.push_back({{frame.left, y}, {frame.right(), y}});
  }
  svg->Lines(lines, "grid");
}

void DrawFrame(const Frame& frame, const Axes& axes, bool x_ticks, Svg* svg) {
  std::vector<Polyline> lines{
      {{frame.left, frame.top}, {frame.left, frame.bottom()}, {frame.right(), frame.bottom()}}};
  double widest = 0;
  for (const Tick& tick : axes.x.Ticks(WantedX(frame, axes.x))) {
    const double x = axes.x(tick.value);
    lines.push_back({{x, frame.bottom()}, {x, frame.bottom() + kTickLength}});
    if (x_ticks) svg->Text({x, frame.bottom() + 20}, "soft", "middle", tick.label);
  }
  for (const Tick& tick : axes.y.Ticks(WantedY(frame))) {
    const double y = axes.y(tick.value);
    lines.push_back({{frame.left - kTickLength, y}, {frame.left, y}});
    svg->Text({frame.left - kTickLength - 4, y + 4.5}, "soft", "end", tick.label);
    widest = std::max(widest, TextWidth(tick.label, kTextSize));
  }
  svg->Lines(lines, "axis");
  if (x_ticks) {
    svg->Text({frame.left + frame.width / 2, frame.bottom() + 42}, "text", "middle",
              Titled(axes.x_title, axes.x.Base(WantedX(frame, axes.x)), frame.width));
  }
  const double title_x =
      std::max(16.0, std::min(frame.left - 46, frame.left - kTickLength - widest - 21));
  svg->TextUpwards({title_x, frame.top + frame.height / 2}, "text",
                   Titled(axes.y_title, axes.y.Base(WantedY(frame)), frame.height + 20));
}

void DrawLegend(Point corner, double width, const std::vector<LegendEntry>& entries, Svg* svg) {
  Point at = corner;
  for (const LegendEntry& entry : entries) {
    DrawMark(at, entry, svg);
    const double indent = entry.mark == Mark::kNone ? 0 : kMarkWidth + 9;
    const bool soft = entry.mark == Mark::kNone || entry.mark == Mark::kMore;
    svg->Text({at.x + indent, at.y + 4.5}, soft ? "soft" : "text", "start",
              Shorten(entry.text, kTextSize, width - indent));
    at.y += kLegendStep;
  }
}

void DrawHeading(double width, std::string_view title, std::string_view subtitle, Svg* svg) {
  const double room = width - 2 * kMarginLeft;
  svg->Text({kMarginLeft, 30}, "title", "start", Shorten(title, kTitleSize, room));
  svg->Text({kMarginLeft, 51}, "soft", "start", Shorten(subtitle, kTextSize, room));
}

void DrawExample(Point at, int label, double radius, Svg* svg) {
  if (label > 0) return svg->Circle(at, radius, "positive");
  // The same area as the disc.
  const double half = 0.89 * radius;
  if (label < 0) return svg->Rectangle({at.x - half, at.y - half}, 2 * half, 2 * half, "negative");
  svg->Areas({Diamond(at, radius)}, "unlabelled");
}

}  // namespace perceptrond::client
