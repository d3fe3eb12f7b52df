#include "tests/bench/growth_picture.h"

#include <algorithm>

#include "tests/bench/panels.h"

namespace perceptrond::bench {
namespace {

constexpr double kPanelWidth = 420;
constexpr double kPanelHeight = 150;
constexpr double kPanelStep = kPanelHeight + kPanelGap;
constexpr double kLegendLeft = 524;

// With room around it, and never empty.
Range LogRange(double least, double largest) { return {least / 1.25, largest * 1.25}; }

Range RatesOf(const GrowthCurve& curve) {
  std::vector<double> rates = curve.law_rates;
  for (const GrowthPoint& point : curve.points) {
    rates.push_back(point.ours);
    rates.push_back(point.null);
  }
  const auto [least, largest] = std::minmax_element(rates.begin(), rates.end());
  // From a round figure, so that panels can be compared.
  return LogRange(std::min(*least, 1e5), std::max(*largest, 4e6));
}

void DrawPanel(const GrowthCurve& curve, double top, Svg* svg) {
  const Frame frame{kPanelsLeft, top, kPanelWidth, kPanelHeight};
  const Range xs = LogRange(curve.points.front().x, curve.points.back().x);
  const Axes axes{Scale(xs, frame.left, frame.right(), true),
                  Scale(RatesOf(curve), frame.bottom(), frame.top, true), curve.x_title,
                  "examples a second"};
  DrawGround(frame, axes, svg);
  Polyline ours;
  Polyline null;
  Polyline law;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const GrowthPoint& point = curve.points[i];
    ours.push_back(axes({point.x, point.ours}));
    null.push_back(axes({point.x, point.null}));
    if (!curve.law_rates.empty()) law.push_back(axes({point.x, curve.law_rates[i]}));
  }
  svg->Lines({null}, "second");
  svg->Lines({law}, "margin");
  svg->Lines({ours}, "first");
  for (const Point& point : ours) svg->Circle(point, 3.5, "first-dot");
  DrawFrame(frame, axes, true, svg);
  std::vector<LegendEntry> legend = {{Mark::kLine, "first", "perceptrond"},
                                     {Mark::kLine, "second", "null server"}};
  if (!law.empty()) legend.push_back({Mark::kLine, "margin", "law: " + curve.law});
  DrawLegend({kLegendLeft, frame.top + 14}, kPictureWidth - kLegendLeft - 10, legend, svg);
}

}  // namespace

std::string DrawGrowth(const std::vector<GrowthCurve>& curves, const std::string& subtitle) {
  const double height = kPanelsTop + static_cast<double>(curves.size()) * kPanelStep;
  Svg svg(kPictureWidth, height, "What a rate grows with", subtitle);
  client::DrawHeading(kPictureWidth, "Examples a second, and what they depend on", subtitle, &svg);
  for (size_t i = 0; i < curves.size(); ++i)
    DrawPanel(curves[i], kPanelsTop + static_cast<double>(i) * kPanelStep, &svg);
  return svg.Finish();
}

}  // namespace perceptrond::bench
