#include "client/draw/pictures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/draw/plot.h"

namespace perceptrond::client {
namespace {

std::vector<Polyline> Drawn(const std::vector<Polyline>& lines, const Axes& axes) {
  std::vector<Polyline> drawn;
  for (const Polyline& line : lines) drawn.push_back(Simplify(axes(line), kTolerance));
  return drawn;
}

bool Any(const BoundaryPicture& picture, int label) {
  return std::any_of(picture.examples.begin(), picture.examples.end(),
                     [=](const DrawnExample& example) { return example.label == label; });
}

size_t CountWrong(const BoundaryPicture& picture) {
  return static_cast<size_t>(
      std::count_if(picture.examples.begin(), picture.examples.end(),
                    [](const DrawnExample& example) { return example.wrong; }));
}

// Radius of the marks: fewer examples are drawn larger.
double RadiusFor(size_t examples) {
  return examples <= 60 ? 5.5 : examples <= 400 ? 4.2 : examples <= 1000 ? 3.2 : 2.4;
}

// With many examples, rings are thinner and closer.
bool AreMany(const BoundaryPicture& picture) { return picture.examples.size() > 400; }
const char* RingOf(const BoundaryPicture& picture) {
  return AreMany(picture) ? "wrong-of-many" : "wrong";
}

std::vector<LegendEntry> Legend(const BoundaryPicture& picture, bool margin) {
  std::vector<LegendEntry> entries;
  if (Any(picture, 1)) entries.push_back({Mark::kDot, "positive", picture.positive});
  if (Any(picture, -1)) entries.push_back({Mark::kSquare, "negative", picture.negative});
  if (Any(picture, 0)) entries.push_back({Mark::kDiamond, "unlabelled", "without a label"});
  const size_t wrong = CountWrong(picture);
  if (wrong > 0)
    entries.push_back({Mark::kRing, RingOf(picture), absl::StrCat("misclassified: ", wrong)});
  entries.push_back({Mark::kLine, "boundary", "boundary: score 0"});
  if (margin) entries.push_back({Mark::kLine, "margin", picture.margin_text});
  entries.push_back({Mark::kArea, "positive-side", absl::StrCat("predicts ", picture.positive)});
  entries.push_back({Mark::kArea, "negative-side", absl::StrCat("predicts ", picture.negative)});
  for (const std::string& note : picture.notes) entries.push_back({Mark::kNone, "", note});
  return entries;
}

// Areas with a score of 0 are not shaded.
void DrawSides(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  constexpr double kAboveZero = std::numeric_limits<double>::min();
  svg->Areas(Drawn(AreasAbove(picture.scores, kAboveZero), axes), "positive-side");
  Field opposite = picture.scores;
  for (double& score : opposite.values) score = -score;
  svg->Areas(Drawn(AreasAbove(opposite, kAboveZero), axes), "negative-side");
}

// Draws the boundary. False: there is none in this window.
bool DrawMargin(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  if (!picture.margin_score.has_value()) return false;
  bool any = false;
  for (const double score : {*picture.margin_score, -*picture.margin_score}) {
    const std::vector<Polyline> lines = Contours(picture.scores, score);
    any = any || !lines.empty();
    svg->Lines(Drawn(lines, axes), "margin");
  }
  return any;
}

// Rings that overlap are drawn translucent, so that together they are as dark as one or two rings.
void DrawManyRings(const std::vector<Point>& points, double radius, Svg* svg) {
  constexpr double kCell = 8;
  constexpr double kLeast = 0.05;
  constexpr double kMost = 0.75;
  constexpr double kInk = 1.5;
  const auto cell = [](Point at) {
    return std::pair(std::floor(at.x / kCell), std::floor(at.y / kCell));
  };
  std::map<std::pair<double, double>, int> counts;
  for (const Point at : points) ++counts[cell(at)];
  for (const Point at : points) {
    const double opacity = std::clamp(kInk / counts[cell(at)], kLeast, kMost);
    svg->Add("circle", "wrong-of-many",
             {{"cx", SvgNumber(at.x)},
              {"cy", SvgNumber(at.y)},
              {"r", SvgNumber(radius)},
              {"stroke-opacity", SvgNumber(opacity)}});
  }
}

void DrawExamples(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  const double radius = RadiusFor(picture.examples.size());
  std::vector<Point> wrong;
  for (const DrawnExample& example : picture.examples) {
    DrawExample(axes(example.at), example.label, radius, svg);
    if (example.wrong) wrong.push_back(axes(example.at));
  }
  if (AreMany(picture)) return DrawManyRings(wrong, radius + 0.8, svg);
  for (const Point at : wrong) svg->Circle(at, radius + 3.5, "wrong");
}

std::string Description(const BoundaryPicture& picture) {
  return absl::StrCat(picture.examples.size(), " examples in the plane of ", picture.x_title,
                      " and ", picture.y_title, ", ", CountWrong(picture),
                      " of them misclassified. ", picture.subtitle);
}

}  // namespace

std::string Draw(const BoundaryPicture& picture) {
  Svg svg(kPictureWidth, kPictureHeight, picture.title, Description(picture));
  const Frame& frame = kPlaneFrame;
  const Window& window = picture.scores.window;
  const Axes axes = MakeAxes(frame, window.x, window.y, picture.x_title, picture.y_title);
  DrawHeading(kPictureWidth, picture.title, picture.subtitle, &svg);
  DrawGround(frame, axes, &svg);
  svg.OpenClip({frame.left, frame.top}, frame.width, frame.height);
  DrawSides(picture, axes, &svg);
  const bool margin = DrawMargin(picture, axes, &svg);
  svg.Lines(Drawn(Contours(picture.scores, 0), axes), "boundary");
  DrawExamples(picture, axes, &svg);
  svg.Close();
  DrawFrame(frame, axes, /*x_ticks=*/true, &svg);
  DrawLegend(kLegendCorner, kLegendWidth, Legend(picture, margin), &svg);
  return svg.Finish();
}

Window WindowFor(const std::vector<DrawnExample>& examples) {
  constexpr double kRoom = 0.09;
  std::vector<double> xs;
  std::vector<double> ys;
  for (const DrawnExample& example : examples) {
    xs.push_back(example.at.x);
    ys.push_back(example.at.y);
  }
  Window window{RangeOf(xs).Padded(kRoom), RangeOf(ys).Padded(kRoom)};
  EqualUnits(kPlaneFrame, &window.x, &window.y);
  return window;
}

}  // namespace perceptrond::client
