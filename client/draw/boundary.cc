#include "client/draw/boundary.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/draw/layout.h"

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

// Fewer examples are larger.
double RadiusFor(size_t examples) { return examples <= 60 ? 5.5 : examples <= 400 ? 4.2 : 3.2; }

std::vector<LegendEntry> Legend(const BoundaryPicture& picture) {
  std::vector<LegendEntry> entries;
  if (Any(picture, 1)) entries.push_back({Mark::kDot, "positive", picture.positive});
  if (Any(picture, -1)) entries.push_back({Mark::kSquare, "negative", picture.negative});
  if (Any(picture, 0)) entries.push_back({Mark::kDiamond, "unlabelled", "without a label"});
  const size_t wrong = CountWrong(picture);
  if (wrong > 0) entries.push_back({Mark::kRing, "wrong", absl::StrCat("wrong: ", wrong)});
  entries.push_back({Mark::kLine, "boundary", "boundary, score 0"});
  if (picture.margin_score.has_value())
    entries.push_back({Mark::kLine, "margin", picture.margin_text});
  entries.push_back({Mark::kArea, "positive-side", absl::StrCat("says ", picture.positive)});
  entries.push_back({Mark::kArea, "negative-side", absl::StrCat("says ", picture.negative)});
  for (const std::string& note : picture.notes) entries.push_back({Mark::kNone, "", note});
  return entries;
}

// At a score of 0 no side is shaded, which matters where it is 0 everywhere.
void DrawSides(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  constexpr double kAboveZero = std::numeric_limits<double>::min();
  svg->Areas(Drawn(AreasAbove(picture.scores, kAboveZero), axes), "positive-side");
  Field opposite = picture.scores;
  for (double& score : opposite.values) score = -score;
  svg->Areas(Drawn(AreasAbove(opposite, kAboveZero), axes), "negative-side");
}

void DrawExamples(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  const double radius = RadiusFor(picture.examples.size());
  for (const DrawnExample& example : picture.examples)
    DrawExample(axes(example.at), example.label, radius, svg);
  for (const DrawnExample& example : picture.examples)
    if (example.wrong) svg->Circle(axes(example.at), radius + 3.5, "wrong");
}

std::string Description(const BoundaryPicture& picture) {
  return absl::StrCat(picture.examples.size(), " examples in the plane of ", picture.x_title,
                      " and ", picture.y_title, ", ", CountWrong(picture),
                      " of them on the wrong side of the model's boundary. ", picture.subtitle);
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
  if (picture.margin_score.has_value()) {
    for (const double score : {*picture.margin_score, -*picture.margin_score})
      svg.Lines(Drawn(Contours(picture.scores, score), axes), "margin");
  }
  svg.Lines(Drawn(Contours(picture.scores, 0), axes), "boundary");
  DrawExamples(picture, axes, &svg);
  svg.Close();
  DrawFrame(frame, axes, /*x_ticks=*/true, &svg);
  DrawLegend(kLegendCorner, kLegendWidth, Legend(picture), &svg);
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
