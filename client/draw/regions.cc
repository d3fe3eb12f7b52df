#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/draw/marks.h"
#include "client/draw/pictures.h"
#include "client/draw/plot.h"

namespace perceptrond::client {
namespace {

// The mark and area of a class: neighbours in the legend differ in colour and in shape.
struct ClassStyle {
  Mark shape;
  // Classes of the style sheet in svg.cc.
  const char* mark;
  const char* side;
};
constexpr ClassStyle kClassStyles[kMostRegions] = {
    {Mark::kDot, "class-1 mark", "class-1 side"},
    {Mark::kSquare, "class-2 mark", "class-2 side"},
    {Mark::kTriangle, "class-3 mark", "class-3 side"},
    {Mark::kWedge, "class-4 mark", "class-4 side"},
    {Mark::kDot, "class-5 mark", "class-5 side"},
    {Mark::kSquare, "class-6 mark", "class-6 side"},
    {Mark::kTriangle, "class-7 mark", "class-7 side"},
    {Mark::kWedge, "class-8 mark", "class-8 side"}};
// Of classes without a colour.
constexpr ClassStyle kOtherStyle = {Mark::kDot, "unlabelled", ""};

std::string Count(size_t count, const char* one, const char* many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

const ClassStyle& StyleOf(const RegionsPicture& picture, int number) {
  for (size_t i = 0; i < std::min(kMostRegions, picture.classes.size()); ++i)
    if (picture.classes[i].number == number) return kClassStyles[i];
  return kOtherStyle;
}

bool Any(const RegionsPicture& picture, int number) {
  return std::any_of(picture.examples.begin(), picture.examples.end(),
                     [=](const DrawnExample& example) { return example.label == number; });
}

size_t CountWrong(const RegionsPicture& picture) {
  return static_cast<size_t>(
      std::count_if(picture.examples.begin(), picture.examples.end(),
                    [](const DrawnExample& example) { return example.wrong; }));
}

std::vector<LegendEntry> Legend(const RegionsPicture& picture) {
  std::vector<LegendEntry> entries;
  for (const RegionsPicture::Class& one : picture.classes) {
    const ClassStyle& style = StyleOf(picture, one.number);
    if (Any(picture, one.number)) {
      entries.push_back({style.shape, style.mark, one.name});
    } else {
      entries.push_back({Mark::kArea, style.side, one.name});
    }
  }
  if (picture.other_classes > 0) {
    entries.push_back({kOtherStyle.shape, kOtherStyle.mark,
                       Count(picture.other_classes, "other class", "other classes")});
  }
  const bool unlabelled =
      std::any_of(picture.examples.begin(), picture.examples.end(),
                  [](const DrawnExample& example) { return example.label < 0; });
  if (unlabelled) entries.push_back({Mark::kDiamond, "unlabelled", "without a label"});
  const size_t wrong = CountWrong(picture);
  if (wrong > 0)
    entries.push_back(
        {Mark::kRing, RingStyle(picture.examples.size()), absl::StrCat("misclassified: ", wrong)});
  entries.push_back({Mark::kLine, "boundary", "boundary: equal scores"});
  entries.push_back({Mark::kNone, "", "an area has the colour of"});
  entries.push_back({Mark::kNone, "", "the class predicted there"});
  for (const std::string& note : picture.notes) entries.push_back({Mark::kNone, "", note});
  return entries;
}

// All areas first: they may not hide a boundary. Points where the two largest scores are equal
// belong to none.
void DrawClasses(const RegionsPicture& picture, const Axes& axes, Svg* svg) {
  constexpr double kAboveZero = std::numeric_limits<double>::min();
  std::vector<Polyline> boundaries;
  for (const RegionsPicture::Class& one : picture.classes) {
    if (one.margin.values.empty()) continue;
    svg->Areas(Drawn(AreasAbove(one.margin, kAboveZero), axes), StyleOf(picture, one.number).side);
    const std::vector<Polyline> lines = Drawn(Contours(one.margin, kAboveZero), axes);
    boundaries.insert(boundaries.end(), lines.begin(), lines.end());
  }
  svg->Lines(boundaries, "boundary");
}

void DrawExamples(const RegionsPicture& picture, const Axes& axes, Svg* svg) {
  const double radius = MarkRadius(picture.examples.size());
  std::vector<Point> wrong;
  for (const DrawnExample& example : picture.examples) {
    const Point at = axes(example.at);
    if (example.label < 0) {
      DrawShape(Mark::kDiamond, at, radius, "unlabelled", svg);
    } else {
      const ClassStyle& style = StyleOf(picture, example.label);
      DrawShape(style.shape, at, radius, style.mark, svg);
    }
    if (example.wrong) wrong.push_back(at);
  }
  DrawRings(wrong, picture.examples.size(), svg);
}

}  // namespace

std::string Draw(const RegionsPicture& picture) {
  Svg svg(kPictureWidth, kPictureHeight, picture.title,
          absl::StrCat(Count(picture.examples.size(), "example", "examples"), " of ",
                       Count(picture.classes.size() + picture.other_classes, "class", "classes"),
                       " in the plane of ", picture.x_title, " and ", picture.y_title, ", ",
                       CountWrong(picture), " of them misclassified. ", picture.subtitle));
  const Frame& frame = kPlaneFrame;
  const Axes axes =
      MakeAxes(frame, picture.window.x, picture.window.y, picture.x_title, picture.y_title);
  DrawHeading(kPictureWidth, picture.title, picture.subtitle, &svg);
  DrawGround(frame, axes, &svg);
  svg.OpenClip({frame.left, frame.top}, frame.width, frame.height);
  DrawClasses(picture, axes, &svg);
  DrawExamples(picture, axes, &svg);
  svg.Close();
  DrawFrame(frame, axes, /*x_ticks=*/true, &svg);
  DrawLegend(kLegendCorner, kLegendWidth, Legend(picture), &svg);
  return svg.Finish();
}

}  // namespace perceptrond::client
