// Pictures of models of several classes.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/draw/draw_run.h"
#include "client/ctl/prediction.h"
#include "core/vector/top.h"

namespace perceptrond::client {
namespace {

// How much of a picture a class has.
struct Presence {
  int number = 0;
  // Points of the grid where it is predicted.
  size_t points = 0;
  size_t examples = 0;
};

// Of the classes in the picture those with the most of it, by number; the number of the others is
// added to `others`.
std::vector<Presence> ChooseClasses(const std::vector<RowScore>& grid,
                                    const std::vector<DrawnExample>& examples, size_t* others) {
  std::map<int, Presence> by_number;
  for (const RowScore& score : grid) ++by_number[score.label].points;
  for (const DrawnExample& example : examples) ++by_number[example.label].examples;
  std::vector<Presence> chosen;
  for (auto& [number, presence] : by_number) {
    presence.number = number;
    // Below 0: no class exists, or the example has no label.
    if (number >= 0) chosen.push_back(presence);
  }
  if (chosen.size() <= kMostRegions) return chosen;
  *others += chosen.size() - kMostRegions;
  KeepTop(chosen, kMostRegions, [](const Presence& a, const Presence& b) {
    return std::pair(a.points, a.examples) > std::pair(b.points, b.examples);
  });
  std::sort(chosen.begin(), chosen.end(),
            [](const Presence& a, const Presence& b) { return a.number < b.number; });
  return chosen;
}

}  // namespace

void DrawRun::NumberLabels() {
  absl::flat_hash_map<std::string, int> numbers;
  for (const std::string& name : label_names_)
    numbers.emplace(name, static_cast<int>(numbers.size()));
  for (Row& row : rows_) {
    if (row.label_name.empty()) continue;
    const auto known = numbers.find(row.label_name);
    row.label = known != numbers.end() ? known->second : kUnknownClass;
    row.label_name.clear();
  }
}

absl::Status DrawRun::AddRegions(RegionsPicture* picture) {
  const absl::StatusOr<ScoredGrid> grid = scorer_.ScoreGrid(plane_, picture->window);
  if (!grid.ok()) return grid.status();
  for (const Presence& one :
       ChooseClasses(grid->scores, picture->examples, &picture->other_classes)) {
    RegionsPicture::Class& added = picture->classes.emplace_back();
    added.number = one.number;
    added.name =
        one.number == kUnknownClass ? "unknown class" : ClassName(one.number, label_names_);
    if (one.points == 0) continue;
    absl::StatusOr<Field> area = scorer_.FindArea(plane_, *grid, one.number);
    if (!area.ok()) return area.status();
    added.margin = *std::move(area);
  }
  return absl::OkStatus();
}

Outcome DrawRun::DrawRegions() {
  RegionsPicture picture;
  bool in_plane = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    in_plane = in_plane && plane_.Holds(rows_[i]);
    picture.examples.push_back(
        {plane_.PointOf(rows_[i]), rows_[i].has_label() ? rows_[i].label : -1, IsWrong(i)});
  }
  picture.window = ChooseRectangle(picture.examples);
  if (const absl::Status status = AddRegions(&picture); !status.ok())
    return Failed(ErrorPrefix(), status);
  picture.title = Title("decision regions");
  picture.subtitle = Subtitle();
  picture.x_title = plane_.x().Title();
  picture.y_title = plane_.y().Title();
  if (!in_plane) picture.notes = {"examples have other", "features too"};
  return WritePicture(Draw(picture), picture.subtitle);
}

// The weights of one class while those of the others stay: an example of the class is a constraint
// against its strongest opponent, one of another class against that class.
Outcome DrawRun::DrawClassWeights() {
  const absl::StatusOr<int32_t> number = FindClass(options_.label, label_names_);
  if (!number.ok()) return InvalidInput(number.status());
  const absl::StatusOr<Point> weights = ReadWeights(*number);
  if (!weights.ok()) return Failed(ErrorPrefix(), weights.status());
  const auto max_classes = static_cast<size_t>(model_.learner().classes().max_classes());
  const absl::StatusOr<std::vector<ClassScore>> scores =
      scorer_.ScoreClass(rows_, *number, max_classes);
  if (!scores.ok()) return Failed(ErrorPrefix(), scores.status());
  const std::string name = ClassName(*number, label_names_);
  WeightsPicture picture;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto [own, opponent] = (*scores)[i];
    if (!rows_[i].has_label() || std::isnan(own) || std::isnan(opponent)) continue;
    const Point at = plane_.PointOf(rows_[i]);
    const int y = rows_[i].label == *number ? 1 : -1;
    const double rest = own - opponent - weights->x * at.x - weights->y * at.y;
    const double margin = y * (own - opponent);
    picture.examples.push_back(
        {{y * at.x, y * at.y, y * rest}, y, margin < 0 || (margin == 0 && IsWrong(i))});
  }
  picture.weights = *weights;
  picture.title = Title(absl::StrCat("weight space of ", name));
  picture.subtitle = Subtitle();
  picture.x_title = absl::StrCat("weight of ", plane_.x().Title());
  picture.y_title = absl::StrCat("weight of ", plane_.y().Title());
  picture.negative = "other classes";
  picture.positive = name;
  return WritePicture(Draw(picture), picture.subtitle);
}

}  // namespace perceptrond::client
