#include "client/draw/pictures.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/draw/marks.h"
#include "client/draw/plot.h"

namespace perceptrond::client {
namespace {

bool Any(const BoundaryPicture& picture, int label) {
  return std::any_of(picture.examples.begin(), picture.examples.end(),
                     [=](const DrawnExample& example) { return example.label == label; });
}

size_t CountWrong(const BoundaryPicture& picture) {
  return static_cast<size_t>(
      std::count_if(picture.examples.begin(), picture.examples.end(),
                    [](const DrawnExample& example) { return example.wrong; }));
}

std::vector<LegendEntry> Legend(const BoundaryPicture& picture, bool margin) {
  std::vector<LegendEntry> entries;
  if (Any(picture, 1)) entries.push_back({Mark::kDot, "positive", picture.positive});
  if (Any(picture, -1)) entries.push_back({Mark::kSquare, "negative", picture.negative});
  if (Any(picture, 0)) entries.push_back({Mark::kDiamond, "unlabelled", "without a label"});
  const size_t wrong = CountWrong(picture);
  if (wrong > 0)
    entries.push_back(
        {Mark::kRing, RingStyle(picture.examples.size()), absl::StrCat("misclassified: ", wrong)});
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

void DrawExamples(const BoundaryPicture& picture, const Axes& axes, Svg* svg) {
  const double radius = MarkRadius(picture.examples.size());
  std::vector<Point> wrong;
  for (const DrawnExample& example : picture.examples) {
    const bool positive = example.label > 0;
    if (example.label == 0) {
      DrawShape(Mark::kDiamond, axes(example.at), radius, "unlabelled", svg);
    } else {
      DrawShape(positive ? Mark::kDot : Mark::kSquare, axes(example.at), radius,
                positive ? "positive" : "negative", svg);
    }
    if (example.wrong) wrong.push_back(axes(example.at));
  }
  DrawRings(wrong, picture.examples.size(), svg);
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
  const Rectangle& window = picture.scores.window;
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

Rectangle RectangleFor(const std::vector<DrawnExample>& examples) {
  constexpr double kRoom = 0.09;
  std::vector<double> xs;
  std::vector<double> ys;
  for (const DrawnExample& example : examples) {
    xs.push_back(example.at.x);
    ys.push_back(example.at.y);
  }
  Rectangle window{RangeOf(xs).Padded(kRoom), RangeOf(ys).Padded(kRoom)};
  EqualUnits(kPlaneFrame, &window.x, &window.y);
  return window;
}

}  // namespace perceptrond::client
