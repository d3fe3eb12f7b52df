#include "client/draw/pictures.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/draw/plot.h"
#include "core/vector/top.h"

namespace perceptrond::client {
namespace {

// Length of the tick that points to the correct side of a line.
constexpr double kArrowTickLength = 9;

double DistanceFrom(Point point, const HalfPlane& half) {
  const double norm = std::hypot(half.a, half.b);
  return norm > 0 ? std::abs(half.At(point)) / norm : HUGE_VAL;
}

// Draws a tick from the middle of a line towards the weights that classify its example correctly.
Polyline TickOf(const HalfPlane& half, Point from, Point to, const Axes& axes) {
  const Point middle = axes(Point{(from.x + to.x) / 2, (from.y + to.y) / 2});
  // The normal of the half-plane in pixels; x and y may have different scales.
  const double dx = half.a / (axes(Point{1, 0}).x - axes(Point{0, 0}).x);
  const double dy = half.b / (axes(Point{0, 1}).y - axes(Point{0, 0}).y);
  const double norm = std::hypot(dx, dy);
  if (norm == 0) return {};
  return {middle,
          {middle.x + kArrowTickLength * dx / norm, middle.y + kArrowTickLength * dy / norm}};
}

std::vector<WeightsPicture::Example> Nearest(const WeightsPicture& picture) {
  std::vector<WeightsPicture::Example> nearest = picture.examples;
  KeepTop(nearest, kMostLines, [&](const auto& a, const auto& b) {
    return DistanceFrom(picture.weights, a.right) < DistanceFrom(picture.weights, b.right);
  });
  return nearest;
}

void DrawLines(const WeightsPicture& picture, int label, const Rectangle& window, const Axes& axes,
               Svg* svg) {
  std::vector<Polyline> lines;
  std::vector<Polyline> ticks;
  for (const WeightsPicture::Example& example : Nearest(picture)) {
    if (example.label != label) continue;
    const auto border = Border(example.right, window);
    if (!border.has_value()) continue;
    lines.push_back(axes(Polyline{border->first, border->second}));
    ticks.push_back(TickOf(example.right, border->first, border->second, axes));
  }
  svg->Lines(lines, label > 0 ? "positive-line" : "negative-line");
  svg->Lines(ticks, label > 0 ? "positive-tick" : "negative-tick");
}

// The legend entry of the region where all are correct, or why there is none.
void AddRegion(const WeightsPicture& picture, bool region, std::vector<LegendEntry>* entries) {
  if (picture.examples.empty()) return;
  if (region) return entries->push_back({Mark::kArea, "region", "all correct"});
  entries->push_back({Mark::kNone, "", "no weights here are correct"});
  const auto lost =
      std::count_if(picture.examples.begin(), picture.examples.end(),
                    [](const auto& example) { return example.Fixed() && example.wrong; });
  if (lost == 0) return;
  entries->push_back(
      {Mark::kNone, "", absl::StrCat(lost, lost == 1 ? " example is" : " examples are", " wrong")});
  entries->push_back({Mark::kNone, "", "for any of these weights"});
}

std::vector<LegendEntry> Legend(const WeightsPicture& picture, bool region) {
  std::vector<LegendEntry> entries{{Mark::kDot, "weights", "the model's weights"}};
  const auto any = [&](int label) {
    return std::any_of(picture.examples.begin(), picture.examples.end(),
                       [=](const auto& example) { return example.label == label; });
  };
  if (any(1)) entries.push_back({Mark::kLine, "positive-line", picture.positive});
  if (any(-1)) entries.push_back({Mark::kLine, "negative-line", picture.negative});
  if (any(1) || any(-1)) {
    entries.push_back({Mark::kNone, "", "a line per example; its tick"});
    entries.push_back({Mark::kNone, "", "points to correct weights"});
  }
  AddRegion(picture, region, &entries);
  if (picture.examples.size() > kMostLines) {
    entries.push_back({Mark::kNone, "",
                       absl::StrCat("the nearest ", kMostLines, " of ", picture.examples.size())});
  }
  return entries;
}

}  // namespace

std::string Draw(const WeightsPicture& picture) {
  const Rectangle window = RectangleFor(picture);
  const Polyline region = RightForAll(picture.examples, window);
  Svg svg(kPictureWidth, kPictureHeight, picture.title,
          absl::StrCat("The plane of ", picture.x_title, " and ", picture.y_title, ", with ",
                       picture.examples.size(), " examples as lines and the model as a point. ",
                       picture.subtitle));
  const Frame& frame = kPlaneFrame;
  const Axes axes = MakeAxes(frame, window.x, window.y, picture.x_title, picture.y_title);
  DrawHeading(kPictureWidth, picture.title, picture.subtitle, &svg);
  DrawGround(frame, axes, &svg);
  svg.OpenClip({frame.left, frame.top}, frame.width, frame.height);
  if (!picture.examples.empty()) svg.Areas({axes(region)}, "region");
  for (const int label : {1, -1}) DrawLines(picture, label, window, axes, &svg);
  svg.Circle(axes(picture.weights), 6, "weights");
  svg.Close();
  DrawFrame(frame, axes, /*x_ticks=*/true, &svg);
  DrawLegend(kLegendCorner, kLegendWidth, Legend(picture, !region.empty()), &svg);
  return svg.Finish();
}

Rectangle RectangleFor(const WeightsPicture& picture) {
  // The median distance of the lines from the origin, for weights of zero.
  std::vector<double> distances;
  for (const WeightsPicture::Example& example : picture.examples) {
    const double distance = DistanceFrom({0, 0}, example.right);
    if (distance > 0 && std::isfinite(distance)) distances.push_back(distance);
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  const double typical = distances.empty() ? 0 : *middle;
  const double size = std::hypot(picture.weights.x, picture.weights.y);
  const double room = size > 0 ? 0.75 * size : typical > 0 ? typical : 1;
  const auto around = [room](double weight) {
    return Range{std::min(0.0, weight) - room, std::max(0.0, weight) + room};
  };
  Rectangle window{around(picture.weights.x), around(picture.weights.y)};
  EqualUnits(kPlaneFrame, &window.x, &window.y);
  return window;
}

Polyline RightForAll(const std::vector<WeightsPicture::Example>& examples,
                     const Rectangle& window) {
  Polyline region = window.Corners();
  for (const WeightsPicture::Example& example : examples) {
    // The tie rule of the model decides whether a score of 0 is correct.
    if (example.Fixed() && example.wrong) return {};
    if (!example.Fixed()) region = Clip(region, example.right);
    if (region.empty()) break;
  }
  // A line or a point is not a region: some example has a score of 0 on it.
  const double least = 1e-9 * window.x.size() * window.y.size();
  return AreaOf(region) > least ? region : Polyline();
}

}  // namespace perceptrond::client
