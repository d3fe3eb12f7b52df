#include "client/ctl/draw/draw_run.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/batch_builder.h"
#include "client/connection.h"
#include "client/ctl/draw/examples.h"
#include "client/ctl/draw/plane.h"
#include "client/ctl/prediction.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "client/draw/pictures.h"
#include "core/report/learner_text.h"

namespace perceptrond::client {
namespace {

bool HasMap(const v1::Model& model) {
  return model.feature_space().map().map_case() != v1::FeatureMap::MAP_NOT_SET;
}

std::optional<double> IfKnown(bool known, double value) {
  return known ? std::optional(value) : std::nullopt;
}

CurvePoint MakePoint(const v1::LearningCurvePoint& point) {
  CurvePoint drawn;
  drawn.revision = static_cast<double>(point.revision());
  drawn.examples = static_cast<double>(point.examples());
  drawn.mistakes = static_cast<double>(point.mistakes());
  drawn.weight_norm = point.weight_norm();
  drawn.margin_ceiling = IfKnown(point.has_margin_ceiling(), point.margin_ceiling());
  drawn.margin_floor = IfKnown(point.has_margin_floor(), point.margin_floor());
  drawn.window_error = IfKnown(point.has_window_error(), point.window_error());
  return drawn;
}

// The label, or 0 for none.
int DrawnLabel(const Row& row) { return row.has_label() ? row.label : 0; }

}  // namespace

int DrawRun::Run() {
  Outcome outcome;
  if (options_.what == "learning-curve") outcome = DrawLearningCurve();
  if (options_.what == "boundary") outcome = DrawPlane();
  if (options_.what == "weights") outcome = DrawPlaneOfWeights();
  row_errors_.PrintCounts();
  return outcome.Report();
}

std::string DrawRun::ErrorPrefix() const { return absl::StrCat("draw ", options_.name); }

Outcome DrawRun::InvalidInput(const absl::Status& status) const {
  return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(status.message())));
}

std::string DrawRun::Title(const std::string& what) const {
  if (!options_.title.empty()) return options_.title;
  return absl::StrCat(std::string(ModelId(model_.name())), ": ", what);
}

std::string DrawRun::Subtitle() const {
  std::string text =
      absl::StrCat(LearnerName(model_.learner()), " at revision ", scorer_.last_revision());
  if (scorer_.first_revision() < scorer_.last_revision())
    absl::StrAppend(&text, " (scores from revisions ", scorer_.first_revision(), " to ",
                    scorer_.last_revision(), ")");
  if (scores_.empty()) return text;
  size_t wrong = 0;
  for (size_t i = 0; i < scores_.size(); ++i) wrong += IsWrong(i) ? 1 : 0;
  absl::StrAppend(&text, ", ", limited_ ? "the first " : "", scores_.size(),
                  scores_.size() == 1 ? " example, " : " examples, ", wrong, " wrong");
  return text;
}

bool DrawRun::IsWrong(size_t i) const {
  const RowScore& score = scores_[i];
  if (!rows_[i].has_label()) return false;
  const v1::TieRule tie_rule = model_.learner().tie_rule();
  // Without distances all scores of classes are 0 while the weights are.
  const bool tied = multiclass_ && score.distance.has_value()
                        ? *score.distance == 0
                        : score.score == 0 && (!multiclass_ || ClassesKnown(model_) > 1);
  if (tied && !multiclass_ && tie_rule == v1::TIE_RULE_CORRECT) return false;
  const bool lost = tied && tie_rule != v1::TIE_RULE_POSITIVE && tie_rule != v1::TIE_RULE_CORRECT;
  return lost || rows_[i].label != score.label;
}

Outcome DrawRun::Load(v1::ModelView view) {
  absl::StatusOr<v1::Model> model = client_.GetModel(options_.name, view);
  if (!model.ok()) return Failed(ErrorPrefix(), model.status());
  model_ = *std::move(model);
  label_names_.assign(model_.label_names().begin(), model_.label_names().end());
  multiclass_ = model_.learner().has_classes();
  return {};
}

// Stored examples have been mapped by Phi already: with a feature map they cannot be drawn.
Outcome DrawRun::ReadStored() {
  if (HasMap(model_) || model_.feature_space().has_composition()) return {};
  absl::StatusOr<StoredExampleRows> stored =
      ReadStoredExampleRows(client_, options_.name, options_.limit);
  if (!stored.ok()) return Failed(ErrorPrefix(), stored.status());
  rows_ = std::move(stored->rows);
  limited_ = stored->limited;
  return {};
}

Outcome DrawRun::ReadRows() {
  if (options_.input.files.empty()) return ReadStored();
  absl::StatusOr<std::unique_ptr<Input>> input = Input::Make(options_.input, model_, false, false);
  if (!input.ok()) return InvalidInput(input.status());
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = (*input)->Next(&row);
    if (more.ok() && !*more) return {};
    if (!more.ok()) {
      if (Outcome outcome = row_errors_.AddBadLine(more.status()); !outcome.ok()) return outcome;
      continue;
    }
    limited_ = rows_.size() == options_.limit;
    if (limited_) return {};
    rows_.push_back(row);
  }
}

Outcome DrawRun::CheckNames() const {
  const std::vector<std::string> unknown = plane_.NamesNotIn(rows_);
  if (unknown.empty()) return {};
  const v1::FeatureMap& map = model_.feature_space().map();
  const bool weights_have_names = model_.feature_space().has_named() && !map.has_fourier();
  absl::StatusOr<v1::Model> model = absl::UnimplementedError("");
  if (weights_have_names) model = client_.GetModel(options_.name, v1::MODEL_VIEW_WEIGHTS);
  // Without names of examples or weights, no name can be checked.
  if (!model.ok() && rows_.empty()) return {};
  for (const std::string& name : unknown) {
    const absl::Status status =
        CheckName(name, rows_, map, model.ok() ? &model->weights() : nullptr);
    if (!status.ok()) return InvalidInput(status);
  }
  return {};
}

Outcome DrawRun::CheckLabel() const {
  if (options_.label.empty() != (multiclass_ && options_.what == "weights")) return {};
  const char* const why = options_.label.empty()
                              ? ": each class has weights; choose a class with --label CLASS"
                          : multiclass_ ? ": --label chooses the class of --what weights"
                                        : ": --label chooses a class, and the model has two labels";
  return UsageError(absl::StrCat(ErrorPrefix(), why));
}

Outcome DrawRun::ReadPlane() {
  if (Outcome outcome = Load(v1::MODEL_VIEW_BASIC); !outcome.ok()) return outcome;
  if (Outcome outcome = CheckLabel(); !outcome.ok()) return outcome;
  if (ExampleSpace(model_.feature_space()).has_text()) {
    return UsageError(absl::StrCat(ErrorPrefix(),
                                   ": the examples are texts, without features to draw; use "
                                   "--what learning-curve, or perceptronctl explain"));
  }
  if (Outcome outcome = ReadRows(); !outcome.ok()) return outcome;
  if (multiclass_) NumberLabels();
  absl::StatusOr<FeaturePlane> plane =
      FeaturePlane::Make(options_.plane, ExampleSpace(model_.feature_space()), rows_);
  if (!plane.ok()) return InvalidInput(plane.status());
  plane_ = *std::move(plane);
  if (Outcome outcome = CheckNames(); !outcome.ok()) return outcome;
  absl::StatusOr<std::vector<RowScore>> scores = scorer_.Score(rows_);
  if (!scores.ok()) return Failed(ErrorPrefix(), scores.status());
  scores_ = *std::move(scores);
  return {};
}

Outcome DrawRun::DrawLearningCurve() {
  if (!options_.input.files.empty())
    return UsageError(absl::StrCat(ErrorPrefix(),
                                   ": a learning curve is drawn without examples; omit the files"));
  if (Outcome outcome = Load(v1::MODEL_VIEW_LEARNING_CURVE); !outcome.ok()) return outcome;
  if (Outcome outcome = CheckLabel(); !outcome.ok()) return outcome;
  LearningCurvePicture picture;
  picture.title = Title("learning curve");
  picture.subtitle = absl::StrCat(LearnerName(model_.learner()), ": ",
                                  Counted(model_.report().examples(), "examples"), ", ",
                                  Counted(model_.report().mistakes(), "mistakes"), ", ",
                                  Counted(model_.report().updates(), "updates"));
  for (const v1::LearningCurvePoint& point : model_.learning_curve())
    picture.points.push_back(MakePoint(point));
  picture.logarithmic = options_.logarithmic;
  return WritePicture(Draw(picture), picture.subtitle);
}

Rectangle DrawRun::ChooseRectangle(const std::vector<DrawnExample>& examples) const {
  Rectangle window = RectangleFor(examples);
  if (examples.empty()) window = {{-2, 2}, {-2, 2}};
  if (options_.x_range.size() == 2) window.x = {options_.x_range[0], options_.x_range[1]};
  if (options_.y_range.size() == 2) window.y = {options_.y_range[0], options_.y_range[1]};
  // Features are float32.
  constexpr double kMost = std::numeric_limits<float>::max();
  for (Range* range : {&window.x, &window.y})
    *range = {std::max(range->lo, -kMost), std::min(range->hi, kMost)};
  return window;
}

void DrawRun::AddMargin(BoundaryPicture* picture) const {
  double closest = HUGE_VAL;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].has_label() && !IsWrong(i))
      closest = std::min(closest, std::abs(scores_[i].score));
  }
  if (closest == 0 || !std::isfinite(closest)) return;
  picture->margin_score = closest;
  // A score is proportional to the distance only if it is linear in this plane.
  const std::optional<HalfPlane> linear = AsLinear(picture->scores);
  const double slope = linear.has_value() ? std::hypot(linear->a, linear->b) : 0;
  picture->margin_text = slope > 0 ? absl::StrFormat("margin %.4g", closest / slope)
                                   : absl::StrFormat("closest correct: ±%.4g", closest);
}

Outcome DrawRun::DrawPlane() {
  if (Outcome outcome = ReadPlane(); !outcome.ok()) return outcome;
  return multiclass_ ? DrawRegions() : DrawBoundary();
}

Outcome DrawRun::DrawBoundary() {
  BoundaryPicture picture;
  bool in_plane = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    in_plane = in_plane && plane_.Holds(rows_[i]);
    picture.examples.push_back({plane_.PointOf(rows_[i]), DrawnLabel(rows_[i]), IsWrong(i)});
  }
  absl::StatusOr<Field> field = scorer_.ScorePlane(plane_, ChooseRectangle(picture.examples));
  if (!field.ok()) return Failed(ErrorPrefix(), field.status());
  picture.scores = *std::move(field);
  picture.title = Title("decision boundary");
  picture.subtitle = Subtitle();
  picture.x_title = plane_.x().Title();
  picture.y_title = plane_.y().Title();
  picture.negative = LabelName(-1, label_names_);
  picture.positive = LabelName(1, label_names_);
  // A discontinuous score has no lines of equal values.
  if (in_plane && !picture.scores.discontinuous) AddMargin(&picture);
  if (!in_plane) picture.notes = {"examples have other", "features too"};
  return WritePicture(Draw(picture), picture.subtitle);
}

absl::StatusOr<Point> DrawRun::ReadWeights(std::optional<int32_t> number) const {
  Row row;
  plane_.MakeRow({1, 1}, &row);
  BatchBuilder batch;
  if (absl::Status status = batch.Add(row); !status.ok()) return status;
  v1::ExampleColumns columns;
  batch.Build(&columns);
  constexpr int32_t kAll = 10'000;
  const absl::StatusOr<v1::ExplainResponse> response =
      client_.Explain(options_.name, std::move(columns), kAll, number);
  if (!response.ok()) return response.status();
  if (const std::string& why = response->explanations(0).contributions_absent(); !why.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("the model has no weights of features: ", why));
  const auto weight = [&](const FeatureKey& feature) {
    for (const v1::FeatureContribution& one : response->explanations(0).contributions()) {
      const bool is = feature.named ? one.name() == feature.name : one.index() == feature.index;
      if (is) return one.weight();
    }
    return 0.0;
  };
  return Point{weight(plane_.x()), weight(plane_.y())};
}

std::string DrawRun::WeightsNotDrawable() const {
  if (HasMap(model_))
    return "with a feature map an example is not a line in the plane of two weights";
  if (model_.feature_space().has_composition())
    return "its features are the outputs of its component models";
  return "";
}

Outcome DrawRun::DrawPlaneOfWeights() {
  if (Outcome outcome = ReadPlane(); !outcome.ok()) return outcome;
  if (const std::string why = WeightsNotDrawable(); !why.empty())
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", why, "; use --what boundary"));
  return multiclass_ ? DrawClassWeights() : DrawWeights();
}

Outcome DrawRun::DrawWeights() {
  const absl::StatusOr<Point> weights = ReadWeights();
  if (!weights.ok()) return Failed(ErrorPrefix(), weights.status());
  WeightsPicture picture;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].has_label()) continue;
    const Point at = plane_.PointOf(rows_[i]);
    const double y = rows_[i].label;
    const double rest = scores_[i].score - weights->x * at.x - weights->y * at.y;
    picture.examples.push_back({{y * at.x, y * at.y, y * rest}, rows_[i].label, IsWrong(i)});
  }
  picture.weights = *weights;
  picture.title = Title("weight space");
  picture.subtitle = Subtitle();
  picture.x_title = absl::StrCat("weight of ", plane_.x().Title());
  picture.y_title = absl::StrCat("weight of ", plane_.y().Title());
  picture.negative = LabelName(-1, label_names_);
  picture.positive = LabelName(1, label_names_);
  return WritePicture(Draw(picture), picture.subtitle);
}

Outcome DrawRun::WritePicture(const std::string& svg, const std::string& summary) const {
  if (options_.file.empty() || options_.file == "-") {
    WriteBytes(stdout, svg);
    return {};
  }
  std::ofstream out(options_.file, std::ios::binary | std::ios::trunc);
  out << svg;
  out.close();
  if (!out) return {kExitFailed, absl::StrCat(ErrorPrefix(), ": cannot write to ", options_.file)};
  Print(absl::StrCat("wrote ", options_.file, ": ", summary, "\n"));
  return {};
}

}  // namespace perceptrond::client
