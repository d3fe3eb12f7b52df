#include "tests/bench/fleet/picture.h"

#include <algorithm>
#include <cmath>

#include "tests/bench/panels.h"

namespace perceptrond::bench::fleet {
namespace {

constexpr double kPanelWidth = 400;
constexpr double kPanelHeight = 180;
constexpr double kPanelStep = kPanelHeight + kPanelGap;
constexpr double kLegendLeft = 508;
constexpr double kRadius = 4;

struct Shape {
  Mark mark;
  const char* style;
};
constexpr Shape kShapes[] = {{Mark::kDot, "class-1 mark"},      {Mark::kSquare, "class-2 mark"},
                             {Mark::kTriangle, "class-3 mark"}, {Mark::kDiamond, "class-4 mark"},
                             {Mark::kWedge, "class-7 mark"},    {Mark::kDot, "class-5 mark"}};

Polyline Positive(const Polyline& line) {
  Polyline kept;
  for (const Point& point : line)
    if (point.x > 0 && point.y > 0) kept.push_back(point);
  return kept;
}

// Of all that the panel shows, with room around it.
void Extend(const Polyline& line, double Point::*coordinate, Range* range) {
  for (const Point& point : Positive(line)) {
    range->lo = std::min(range->lo, point.*coordinate);
    range->hi = std::max(range->hi, point.*coordinate);
  }
}

Range RangeOf(const Panel& panel, double Point::*coordinate) {
  Range range{1e300, 0};
  for (const Series& series : panel.series) {
    Extend(series.simulated, coordinate, &range);
    Extend(series.law, coordinate, &range);
  }
  Extend(panel.bound, coordinate, &range);
  if (range.hi == 0) return {1, 10};
  return {range.lo / 1.4, range.hi * 1.4};
}

void DrawPanel(const Panel& panel, double top, Svg* svg) {
  const Frame frame{kPanelsLeft, top, kPanelWidth, kPanelHeight};
  const Axes axes{Scale(RangeOf(panel, &Point::x), frame.left, frame.right(), true),
                  Scale(RangeOf(panel, &Point::y), frame.bottom(), frame.top, true), panel.x_title,
                  panel.y_title};
  DrawGround(frame, axes, svg);
  std::vector<LegendEntry> legend;
  bool has_law = false;
  for (const Series& series : panel.series) {
    has_law = has_law || !series.law.empty();
    svg->Lines({axes(Positive(series.law.empty() ? series.simulated : series.law))},
               series.law.empty() ? "axis" : "margin");
  }
  svg->Lines({axes(Positive(panel.bound))}, "second");
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const Shape& shape = kShapes[i % std::size(kShapes)];
    for (const Point& point : axes(Positive(panel.series[i].simulated)))
      DrawShape(shape.mark, point, kRadius, shape.style, svg);
    legend.push_back({shape.mark, shape.style, panel.series[i].name});
  }
  DrawFrame(frame, axes, true, svg);
  if (has_law) legend.push_back({Mark::kLine, "margin", "law"});
  if (!panel.bound.empty()) legend.push_back({Mark::kLine, "second", panel.bound_name});
  for (const std::string& note : panel.notes) legend.push_back({Mark::kNone, "", note});
  DrawLegend({kLegendLeft, frame.top + 14}, kPictureWidth - kLegendLeft - 10, legend, svg);
}

}  // namespace

std::string DrawPanels(const std::vector<Panel>& panels, const std::string& subtitle) {
  const double height = kPanelsTop + static_cast<double>(panels.size()) * kPanelStep;
  Svg svg(kPictureWidth, height, "A simulated fleet", subtitle);
  client::DrawHeading(kPictureWidth,
                      "A simulated fleet: what one model's replicas forward and learn", subtitle,
                      &svg);
  for (size_t i = 0; i < panels.size(); ++i)
    DrawPanel(panels[i], kPanelsTop + static_cast<double>(i) * kPanelStep, &svg);
  return svg.Finish();
}

}  // namespace perceptrond::bench::fleet
