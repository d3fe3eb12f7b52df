#include "client/draw/pictures.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/draw/plot.h"

namespace perceptrond::client {
namespace {

constexpr double kWidth = 784;
constexpr double kTop = 76;
constexpr double kLeft = 92;
constexpr double kPanelWidth = 452;
constexpr double kPanelHeight = 128;
constexpr double kPanelStep = kPanelHeight + 26;
constexpr double kBelow = 64;
constexpr double kLegendLeft = 562;
// Ratio of the largest to the smallest figure from which a panel has a logarithmic scale.
constexpr double kLogarithmicFrom = 30;

using Figure = std::function<std::optional<double>(const CurvePoint&)>;

struct Series {
  std::string name;
  const char* style;
  const char* dot_style;
  Figure figure;
  // Small print under the name.
  std::string note = {};
};

struct Panel {
  std::string y_title;
  std::vector<Series> series;
  // The scale may be logarithmic and need not begin at 0.
  bool may_be_logarithmic = false;
};

std::vector<Panel> AllPanels() {
  const auto share = [](double part, double of) -> std::optional<double> {
    return of > 0 ? std::optional(100 * part / of) : std::nullopt;
  };
  return {
      {"mistakes",
       {{"mistakes", "first", "first-dot", [](const CurvePoint& p) { return p.mistakes; }}}},
      {"norm",
       {{"norm of the weights", "first", "first-dot",
         [](const CurvePoint& p) { return p.weight_norm; }}}},
      {"margin",
       {{"ceiling: at most", "first", "first-dot",
         [](const CurvePoint& p) { return p.margin_ceiling; }, "of all data seen"},
        {"floor: at least", "second", "second-dot",
         [](const CurvePoint& p) { return p.margin_floor; }, "of the last clean pass"}},
       /*may_be_logarithmic=*/true},
      {"error, %",
       {{"last 1,000 examples", "first", "first-dot",
         [](const CurvePoint& p) -> std::optional<double> {
           return p.window_error.has_value() ? std::optional(100 * *p.window_error) : std::nullopt;
         }},
        {"all examples", "second", "second-dot",
         [share](const CurvePoint& p) { return share(p.mistakes, p.examples); }}}},
  };
}

std::vector<double> Known(const Panel& panel, const std::vector<CurvePoint>& points) {
  std::vector<double> known;
  for (const Series& series : panel.series) {
    for (const CurvePoint& point : points)
      if (const std::optional<double> value = series.figure(point)) known.push_back(*value);
  }
  return known;
}

// The scale of a panel, and whether it is logarithmic.
std::pair<Range, bool> RangeFor(const Panel& panel, std::vector<double> known) {
  const auto [least, largest] = std::minmax_element(known.begin(), known.end());
  if (panel.may_be_logarithmic && *least > 0 && *largest > kLogarithmicFrom * *least)
    return {{*least / 1.3, *largest * 1.3}, true};
  known.push_back(0);
  Range range = RangeOf(known);
  range.lo = 0;
  range.hi *= 1.06;
  return {range, false};
}

// Consecutive known figures as lines; an isolated one is a line of one point.
std::vector<Polyline> LinesOf(const Series& series, const std::vector<CurvePoint>& points) {
  std::vector<Polyline> lines(1);
  for (const CurvePoint& point : points) {
    const std::optional<double> value = series.figure(point);
    if (value.has_value()) {
      const Point at{point.revision, *value};
      if (lines.back().empty() || lines.back().back() != at) lines.back().push_back(at);
    } else if (!lines.back().empty()) {
      lines.emplace_back();
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

// Draws a series and returns its legend entry.
void DrawSeries(const Series& series, const std::vector<CurvePoint>& points, const Axes& axes,
                std::vector<LegendEntry>* legend, Svg* svg) {
  const std::vector<Polyline> lines = LinesOf(series, points);
  if (lines.empty()) return;
  std::vector<Polyline> drawn;
  for (const Polyline& line : lines) drawn.push_back(axes(line));
  svg->Lines(drawn, series.style);
  for (const Polyline& line : drawn)
    if (line.size() == 1) svg->Circle(line[0], 4, series.dot_style);
  const bool dots = std::all_of(lines.begin(), lines.end(),
                                [](const Polyline& line) { return line.size() == 1; });
  legend->push_back(dots ? LegendEntry{Mark::kDot, series.dot_style, series.name}
                         : LegendEntry{Mark::kLine, series.style, series.name});
  if (!series.note.empty()) legend->push_back({Mark::kMore, "", series.note});
}

class CurvesDrawing {
 public:
  CurvesDrawing(const LearningCurvePicture& picture, std::vector<Panel> panels,
                std::vector<CurvePoint> points)
      : picture_(picture),
        panels_(std::move(panels)),
        points_(std::move(points)),
        svg_(kWidth, Height(), picture.title, Description()) {}

  std::string Draw() {
    DrawHeading(kWidth, picture_.title, picture_.subtitle, &svg_);
    for (size_t i = 0; i < panels_.size(); ++i) DrawPanel(i);
    return svg_.Finish();
  }

 private:
  double Height() const {
    return kTop + static_cast<double>(panels_.size()) * kPanelStep + kBelow - 26;
  }

  std::string Description() const {
    std::string text = absl::StrCat("Learning curve by revision: ");
    for (const Panel& panel : panels_) absl::StrAppend(&text, panel.y_title, "; ");
    return absl::StrCat(text, picture_.subtitle);
  }

  Range Revisions() const {
    if (points_.empty()) return {1, 10};
    const double first = points_.front().revision;
    const double last = points_.back().revision;
    // From revision 0, unless the scale is logarithmic.
    const double from = picture_.logarithmic ? first : 0;
    return from < last ? Range{from, last} : Range{from, from + 1};
  }

  void DrawPanel(size_t number) {
    const Panel& panel = panels_[number];
    const Frame frame{kLeft, kTop + static_cast<double>(number) * kPanelStep, kPanelWidth,
                      kPanelHeight};
    const auto [range, logarithmic] = RangeFor(panel, Known(panel, points_));
    const Axes axes{Scale(Revisions(), frame.left, frame.right(), picture_.logarithmic),
                    Scale(range, frame.bottom(), frame.top, logarithmic),
                    "revision (number of updates)", panel.y_title};
    DrawGround(frame, axes, &svg_);
    std::vector<LegendEntry> legend;
    for (const Series& series : panel.series) DrawSeries(series, points_, axes, &legend, &svg_);
    DrawFrame(frame, axes, number + 1 == panels_.size(), &svg_);
    DrawLegend({kLegendLeft, frame.top + 14}, kWidth - kLegendLeft - 10, legend, &svg_);
  }

  const LearningCurvePicture& picture_;
  const std::vector<Panel> panels_;
  const std::vector<CurvePoint> points_;
  Svg svg_;
};

}  // namespace

std::string Draw(const LearningCurvePicture& picture) {
  std::vector<CurvePoint> points = picture.points;
  if (picture.logarithmic)
    std::erase_if(points, [](const CurvePoint& point) { return point.revision <= 0; });
  std::vector<Panel> panels = AllPanels();
  std::erase_if(panels, [&](const Panel& panel) { return Known(panel, points).empty(); });
  return CurvesDrawing(picture, std::move(panels), std::move(points)).Draw();
}

}  // namespace perceptrond::client
