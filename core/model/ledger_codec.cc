#include "core/model/ledger_codec.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

constexpr int64_t kMicros = 1'000'000;
// The end of the year 9999: what a Timestamp may say.
constexpr int64_t kLatestSecond = 253'402'300'799;

}  // namespace

PassSummary FromProto(const ::perceptron::v1::PassSummary& stored) {
  PassSummary pass;
  pass.number = stored.number();
  pass.examples = stored.examples();
  pass.mistakes = stored.mistakes();
  pass.updates = stored.updates();
  pass.rejected = stored.rejected();
  pass.risk = stored.risk();
  pass.loss = stored.loss();
  pass.converged = stored.converged();
  if (stored.has_margin()) pass.margin = stored.margin();
  return pass;
}

::perceptron::v1::PassSummary ToProto(const PassSummary& pass) {
  ::perceptron::v1::PassSummary proto;
  proto.set_number(pass.number);
  proto.set_examples(pass.examples);
  proto.set_mistakes(pass.mistakes);
  proto.set_updates(pass.updates);
  proto.set_rejected(pass.rejected);
  proto.set_risk(pass.risk);
  proto.set_loss(pass.loss);
  proto.set_converged(pass.converged);
  if (pass.margin.has_value()) proto.set_margin(*pass.margin);
  return proto;
}

::perceptron::v1::HistoryPoint ToProto(const HistoryPoint& point) {
  ::perceptron::v1::HistoryPoint proto;
  proto.set_revision(static_cast<int64_t>(point.revision));
  proto.set_examples(point.examples);
  proto.set_mistakes(point.mistakes);
  proto.set_weight_norm(point.weight_norm);
  if (point.margin_ceiling.has_value()) proto.set_margin_ceiling(*point.margin_ceiling);
  if (point.margin_floor.has_value()) proto.set_margin_floor(*point.margin_floor);
  if (point.window_error.has_value()) proto.set_window_error(*point.window_error);
  proto.mutable_time()->set_seconds(point.unix_micros / kMicros);
  proto.mutable_time()->set_nanos(static_cast<int32_t>(point.unix_micros % kMicros * 1000));
  return proto;
}

HistoryPoint FromProto(const ::perceptron::v1::HistoryPoint& stored) {
  HistoryPoint point;
  // A negative one is none that is wanted.
  point.revision = static_cast<uint64_t>(std::max<int64_t>(0, stored.revision()));
  point.examples = stored.examples();
  point.mistakes = stored.mistakes();
  point.weight_norm = stored.weight_norm();
  if (stored.has_margin_ceiling()) point.margin_ceiling = stored.margin_ceiling();
  if (stored.has_margin_floor()) point.margin_floor = stored.margin_floor();
  if (stored.has_window_error()) point.window_error = stored.window_error();
  const int64_t seconds = std::clamp<int64_t>(stored.time().seconds(), 0, kLatestSecond);
  const int64_t nanos = std::clamp<int64_t>(stored.time().nanos(), 0, 999'999'999);
  point.unix_micros = seconds * kMicros + nanos / 1000;
  return point;
}

storage::History ToStorage(const History& history) {
  storage::History stored;
  stored.set_spacing(history.spacing());
  for (const HistoryPoint& point : history.points()) *stored.add_points() = ToProto(point);
  return stored;
}

absl::StatusOr<History> FromStorage(const storage::History& stored) {
  std::vector<HistoryPoint> points;
  for (const auto& point : stored.points()) points.push_back(FromProto(point));
  std::optional<History> history = History::From(stored.spacing(), std::move(points));
  if (!history.has_value()) return absl::DataLossError("a snapshot's curves contradict themselves");
  return *std::move(history);
}

::perceptron::v1::Analysis ToProto(const AnalysisRecord& analysis) {
  ::perceptron::v1::Analysis proto;
  proto.set_revision(static_cast<int64_t>(analysis.revision));
  proto.set_examples(analysis.examples);
  proto.set_complete(analysis.complete);
  proto.set_separability(
      static_cast<::perceptron::v1::Separability>(static_cast<int>(analysis.separability) + 1));
  if (analysis.margin_lower > 0) proto.set_margin_lower(analysis.margin_lower);
  if (std::isfinite(analysis.margin_upper) && analysis.separability != Separability::kNotSeparable)
    proto.set_margin_upper(analysis.margin_upper);
  proto.set_radius(analysis.radius);
  proto.mutable_time()->set_seconds(analysis.unix_nanos / 1'000'000'000);
  proto.mutable_time()->set_nanos(static_cast<int32_t>(analysis.unix_nanos % 1'000'000'000));
  return proto;
}

AnalysisRecord FromProto(const ::perceptron::v1::Analysis& stored) {
  AnalysisRecord analysis;
  analysis.revision = static_cast<uint64_t>(stored.revision());
  analysis.examples = stored.examples();
  analysis.complete = stored.complete();
  if (stored.separability() == ::perceptron::v1::SEPARABILITY_SEPARABLE)
    analysis.separability = Separability::kSeparable;
  if (stored.separability() == ::perceptron::v1::SEPARABILITY_NOT_SEPARABLE) {
    analysis.separability = Separability::kNotSeparable;
    analysis.margin_upper = 0;
  }
  analysis.margin_lower = stored.margin_lower();
  if (stored.has_margin_upper()) analysis.margin_upper = stored.margin_upper();
  analysis.radius = stored.radius();
  analysis.unix_nanos = stored.time().seconds() * 1'000'000'000 + stored.time().nanos();
  return analysis;
}

storage::Counters ToStorage(const Counters& counters) {
  storage::Counters stored;
  stored.set_examples(counters.examples);
  stored.set_mistakes(counters.mistakes);
  stored.set_updates(counters.updates);
  stored.set_duplicates(counters.duplicates);
  for (size_t i = 0; i < kValidationCodes; ++i) {
    if (counters.rejected[i] > 0)
      (*stored.mutable_rejected())[ReasonName(static_cast<ValidationCode>(i))] =
          counters.rejected[i];
  }
  stored.set_streak(counters.streak);
  stored.set_loss(counters.loss);
  stored.set_weighted_examples(counters.weighted_examples);
  stored.set_weighted_updates(counters.weighted_updates);
  if (counters.converged_at.has_value()) stored.set_converged_at(*counters.converged_at);
  if (counters.unlearned_at.has_value()) stored.set_unlearned_at(*counters.unlearned_at);
  stored.set_whole_steps(counters.whole_steps);
  stored.set_not_separable(counters.not_separable);
  stored.set_rounding(counters.rounding);
  if (counters.margin_ceiling.has_value()) stored.set_margin_ceiling(*counters.margin_ceiling);
  stored.set_drifts(counters.drift.detected);
  stored.set_drift_example(counters.drift.last_example);
  stored.set_drift_error_before(counters.drift.error_before);
  stored.set_drift_error_after(counters.drift.error_after);
  stored.set_squared_radius(counters.squared_radius);
  stored.set_margin_floor(counters.margin_floor);
  stored.set_floor_squared_radius(counters.floor_squared_radius);
  if (counters.last_pass.has_value()) *stored.mutable_last_pass() = ToProto(*counters.last_pass);
  if (counters.analysis.has_value()) *stored.mutable_analysis() = ToProto(*counters.analysis);
  if (std::isfinite(counters.analysis_ceiling))
    stored.set_analysis_ceiling(counters.analysis_ceiling);
  stored.set_analysis_not_separable(counters.analysis_not_separable);
  stored.set_adoptions(counters.adoptions);
  stored.set_adopted_revision(counters.adopted_revision);
  if (counters.components.has_value()) stored.set_components(*counters.components);
  stored.set_component_changes(counters.component_changes);
  return stored;
}

Counters FromStorage(const storage::Counters& stored) {
  Counters counters;
  counters.examples = stored.examples();
  counters.mistakes = stored.mistakes();
  counters.updates = stored.updates();
  counters.duplicates = stored.duplicates();
  for (size_t i = 0; i < kValidationCodes; ++i) {
    const auto found = stored.rejected().find(ReasonName(static_cast<ValidationCode>(i)));
    if (found != stored.rejected().end()) counters.rejected[i] = found->second;
  }
  counters.streak = stored.streak();
  counters.loss = stored.loss();
  counters.weighted_updates = stored.weighted_updates();
  // Who cannot know that there were none reckons with one.
  counters.weighted_examples = stored.has_weighted_examples()
                                   ? stored.weighted_examples()
                                   : std::min<uint64_t>(counters.examples, 1);
  if (stored.has_converged_at()) counters.converged_at = stored.converged_at();
  if (stored.has_unlearned_at()) counters.unlearned_at = stored.unlearned_at();
  counters.whole_steps = stored.whole_steps();
  counters.not_separable = stored.not_separable();
  counters.rounding = stored.rounding();
  if (stored.has_margin_ceiling()) counters.margin_ceiling = stored.margin_ceiling();
  counters.drift = {stored.drifts(), stored.drift_example(), stored.drift_error_before(),
                    stored.drift_error_after()};
  counters.squared_radius = stored.squared_radius();
  counters.margin_floor = stored.margin_floor();
  counters.floor_squared_radius = stored.floor_squared_radius();
  if (stored.has_last_pass()) counters.last_pass = FromProto(stored.last_pass());
  if (stored.has_analysis()) counters.analysis = FromProto(stored.analysis());
  if (stored.has_analysis_ceiling()) counters.analysis_ceiling = stored.analysis_ceiling();
  counters.analysis_not_separable = stored.analysis_not_separable();
  counters.adoptions = stored.adoptions();
  counters.adopted_revision = stored.adopted_revision();
  if (stored.has_components()) counters.components = stored.components();
  counters.component_changes = stored.component_changes();
  return counters;
}

storage::PassProgress ToStorage(const PassProgress& pass) {
  storage::PassProgress stored;
  stored.set_examples(pass.examples);
  stored.set_mistakes(pass.mistakes);
  stored.set_updates(pass.updates);
  stored.set_rejected(pass.rejected);
  stored.set_risk(pass.risk);
  stored.set_loss(pass.loss);
  stored.set_min_score(pass.min_score);
  stored.set_squared_radius(pass.squared_radius);
  stored.set_start_revision(pass.start_revision);
  stored.set_changed(pass.changed);
  if (pass.components.has_value()) stored.set_components(*pass.components);
  return stored;
}

PassProgress FromStorage(const storage::PassProgress& stored) {
  PassProgress pass;
  // An empty pass is stored as nothing at all; its minimum is that of no example.
  if (stored.examples() > 0) pass.min_score = stored.min_score();
  pass.examples = stored.examples();
  pass.mistakes = stored.mistakes();
  pass.updates = stored.updates();
  pass.rejected = stored.rejected();
  pass.risk = stored.risk();
  pass.loss = stored.loss();
  pass.squared_radius = stored.squared_radius();
  pass.start_revision = stored.start_revision();
  pass.changed = stored.changed();
  if (stored.has_components()) pass.components = stored.components();
  return pass;
}

}  // namespace perceptrond
