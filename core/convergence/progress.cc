#include "core/convergence/progress.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// 2^24: every whole number up to it is a float32.
constexpr double kExactInFloat32 = 16777216;

// What the norm, a running sum in float64, may be off by, relatively.
constexpr double kNormError = 1e-12;

// The margin ceiling of the report is below `margin`.
bool IsCeilingBelow(const ConvergenceReport& report, double margin) {
  return report.has_margin_ceiling() && report.margin_ceiling() < margin;
}

// Removes an analysis' verdict that a proof about all data seen contradicts: the analysis did not have
// the examples of the proof, which are newer or no longer stored.
void RemoveContradicted(ConvergenceReport& report) {
  if (report.analysis().separability() != v1::SEPARABILITY_SEPARABLE) return;
  if (report.state() != v1::CONVERGENCE_STATE_NOT_SEPARABLE &&
      !IsCeilingBelow(report, report.analysis().margin_lower()))
    return;
  v1::Analysis& analysis = *report.mutable_analysis();
  analysis.clear_separability();
  analysis.clear_margin_lower();
  analysis.clear_margin_upper();
}

}  // namespace

void Progress::Add(const Tally& tally, Source source) {
  AddComponents(tally);
  AddCounts(tally);
  if (tally.unlearned) AddUnlearned();
  if (source == Source::kStream) AddToDrift(tally);
  AddToTheorem(tally);
  if (tally.mistakes == 0) return;
  // A stretch ends with its mistake, so the mistake is the last example counted.
  const uint64_t examples = counters_.report().examples();
  window_.push_back({examples, 1, tally.risk});
  while (window_.front().example + kWindow <= examples) window_.pop_front();
}

void Progress::AddLate(const Tally& tally, Source source) {
  const uint64_t streak = counters_.report().streak();
  Add(tally, source);
  counters_.mutable_report()->set_streak(std::min(streak, counters_.report().streak()));
}

void Progress::AddCounts(const Tally& tally) {
  ConvergenceReport& report = *counters_.mutable_report();
  report.set_examples(report.examples() + tally.examples);
  report.set_examples_elsewhere(report.examples_elsewhere() + tally.examples_elsewhere);
  report.set_mistakes(report.mistakes() + tally.mistakes);
  report.set_updates(report.updates() + tally.updates);
  report.set_duplicates(report.duplicates() + tally.duplicates);
  report.set_streak(tally.updates > 0 ? 0 : report.streak() + tally.examples);
  for (size_t i = 0; tally.row_error_count > 0 && i < kValidationCodes; ++i) {
    if (tally.row_errors[i] > 0)
      (*report.mutable_row_errors())[ReasonName(static_cast<ValidationCode>(i))] +=
          tally.row_errors[i];
  }
  counters_.set_loss(counters_.loss() + tally.loss);
  counters_.set_squared_radius(std::max(counters_.squared_radius(), tally.squared_radius));
  counters_.set_weighted_examples(counters_.weighted_examples() + tally.weighted_examples);
  counters_.set_weighted_updates(counters_.weighted_updates() + tally.weighted_updates);
}

// A pass that ended before was over other features.
void Progress::AddComponents(const Tally& tally) {
  const bool same = counters_.has_components() == tally.components.has_value() &&
                    counters_.components() == tally.components.value_or(0);
  if (tally.examples == 0 || same) return;
  if (counters_.report().examples() > 0) {
    counters_.set_component_changes(counters_.component_changes() + 1);
    counters_.clear_converged_at();
  }
  counters_.clear_components();
  if (tally.components.has_value()) counters_.set_components(*tally.components);
}

// An example was wrong, or not right by enough, and nothing changed: it ends the run of right
// examples, and no pass with it converges.
void Progress::AddUnlearned() {
  counters_.mutable_report()->set_streak(0);
  counters_.clear_converged_at();
  counters_.set_unlearned_at(updates());
}

void Progress::AddPass(const PassSummary& pass, double squared_radius) {
  *counters_.mutable_report()->mutable_last_pass() = pass;
  if (pass.converged()) counters_.set_converged_at(updates());
  // A pass that was right without a measurable margin says nothing of its data's margin, and the
  // margin of an earlier pass is not the latest's.
  if (pass.converged() || pass.has_margin()) {
    counters_.set_margin_floor(pass.margin());
    counters_.set_floor_squared_radius(squared_radius);
  }
}

void Progress::AddAnalysis(const v1::Analysis& analysis) {
  v1::Analysis& latest = *counters_.mutable_report()->mutable_analysis();
  latest = analysis;
  latest.clear_current();
  // It was about other features.
  if (static_cast<uint64_t>(analysis.revision()) < counters_.inputs_changed_at()) return;
  if (analysis.separability() == v1::SEPARABILITY_NOT_SEPARABLE)
    counters_.set_analysis_not_separable(true);
  if (!analysis.has_margin_upper()) return;
  const double upper = analysis.margin_upper();
  counters_.set_analysis_ceiling(
      counters_.has_analysis_ceiling() ? std::min(counters_.analysis_ceiling(), upper) : upper);
}

void Progress::AddWeightReplacement(uint64_t revision) {
  counters_.mutable_report()->set_updates(updates() + 1);
  counters_.mutable_report()->set_streak(0);
  counters_.set_weight_replacements(counters_.weight_replacements() + 1);
  counters_.set_replaced_at(revision);
  BeginWindows();
}

void Progress::AddInputChange(uint64_t revision) {
  AddWeightReplacement(revision);
  counters_.set_inputs_changed_at(revision);
  counters_.set_squared_radius(0);
  counters_.clear_margin_ceiling();
  counters_.set_not_separable(false);
  counters_.set_margin_floor(0);
  counters_.set_floor_squared_radius(0);
  counters_.clear_analysis_ceiling();
  counters_.set_analysis_not_separable(false);
}

void Progress::AddToDrift(const Tally& tally) {
  Adwin::Change change;
  if (!adwin_.Add(tally.examples - tally.mistakes, tally.mistakes > 0, &change)) return;
  // An error that falls is learning.
  if (change.error_after <= change.error_before) return;
  v1::DriftReport& drift = *counters_.mutable_report()->mutable_drift();
  drift.set_detections(drift.detections() + 1);
  drift.set_last_example(counters_.report().examples());
  drift.set_error_before(change.error_before);
  drift.set_error_after(change.error_after);
}

void Progress::AddToTheorem(const Tally& tally) {
  // Replaced weights are no sum of the examples.
  if (tally.updates == 0 || counters_.weight_replacements() > 0) return;
  counters_.set_whole_steps(counters_.whole_steps() + tally.whole_step);
  if (counters_.whole_steps() > kExactInFloat32)
    counters_.set_rounding(counters_.rounding() + tally.rounding);
  // Any unit separator with margin g has theta . it >= eta k g, except for what rounding took away.
  const double ceiling = (tally.scaled_norm * (1 + kNormError) + counters_.rounding()) /
                         static_cast<double>(run_updates());
  counters_.set_margin_ceiling(
      counters_.has_margin_ceiling() ? std::min(counters_.margin_ceiling(), ceiling) : ceiling);
  // Then a positive combination of the examples y (x, b) vanishes: by Gordan's theorem no strict
  // separator exists, and none will.
  if (tally.at_zero && counters_.whole_steps() <= kExactInFloat32)
    counters_.set_not_separable(true);
}

bool Progress::ComponentsUnchanged(const TheoremContext& context) const {
  if (!context.composed) return true;
  if (!context.components.has_value()) return false;
  const bool same = counters_.has_components() && counters_.components() == *context.components;
  return same || counters_.report().examples() == 0;
}

ConvergenceReport Progress::MakeStoredReport(const TheoremContext& context) const {
  ConvergenceReport report = CountedReport();
  ReportWindow(report);
  // What proofs leave does not depend on the norm.
  const ConvergenceReport proven = MakeReport(0, context);
  report.set_state(proven.state());
  if (report.has_analysis()) {
    *report.mutable_analysis() = proven.analysis();
    report.mutable_analysis()->clear_current();
  }
  return report;
}

ConvergenceReport Progress::CountedReport() const {
  ConvergenceReport report = counters_.report();
  report.mutable_drift();
  report.set_radius(std::sqrt(counters_.squared_radius()));
  if (report.examples() > 0) {
    const auto examples = static_cast<double>(report.examples());
    report.set_progressive_error(static_cast<double>(report.mistakes()) / examples);
    report.set_mean_loss(counters_.loss() / examples);
  }
  return report;
}

ConvergenceReport Progress::MakeReport(double squared_norm, const TheoremContext& context) const {
  ConvergenceReport report = CountedReport();
  // A sum of changes that cancel may end a rounding error below zero.
  squared_norm = std::max(0.0, squared_norm);
  report.set_weight_norm(std::sqrt(squared_norm));
  report.set_separate_prediction_weights(context.separate_prediction_weights);
  ReportWindow(report);
  ReportDrift(report);
  ReportErrorCeiling(context, report);
  if (ProofsApply(context)) ReportProofs(context, report);
  if (TheoremApplies(context)) ReportTheorem(context, report);
  ReportAnalysis(context, report);
  report.set_state(State(context, report));
  RemoveContradicted(report);
  return report;
}

void Progress::ReportDrift(ConvergenceReport& report) const {
  if (adwin_.size() == 0) return;
  v1::DriftReport& drift = *report.mutable_drift();
  drift.set_window_examples(adwin_.size());
  drift.set_window_error(adwin_.error());
}

// The ceiling is for examples drawn independently; a marked pass says that they come again. It is a
// statement about the weights that had the streak, and about their first streak: the longest of
// several is longer by luck.
void Progress::ReportErrorCeiling(const TheoremContext& context, ConvergenceReport& report) const {
  if (report.updates() == 0 || report.streak() == 0 || report.has_last_pass()) return;
  const bool unlearned =
      counters_.has_unlearned_at() && counters_.unlearned_at() == report.updates();
  if (context.separate_prediction_weights || !IsOneDataSet(context) || unlearned) return;
  const auto k = static_cast<double>(report.updates());
  const double ceiling =
      std::log(k * (k + 1) / kErrorCeilingDelta) / static_cast<double>(report.streak());
  if (ceiling < 1) report.set_error_ceiling(ceiling);
}

// What the updates from zero proved of the data seen. It holds whatever the weights are now: replaced, or those
// of a run that a rollback took back to its start.
void Progress::ReportProofs(const TheoremContext& context, ConvergenceReport& report) const {
  if (counters_.has_margin_ceiling() && std::isfinite(counters_.margin_ceiling()))
    report.set_margin_ceiling(counters_.margin_ceiling());
  const bool refuted =
      counters_.not_separable() || IsCeilingBelow(report, context.margin_of_interest);
  // Without the theorem they are not sought.
  const bool sought = TheoremApplies(context);
  if (counters_.not_separable() || sought) report.set_not_separable(counters_.not_separable());
  if (context.margin_of_interest > 0 && (refuted || sought)) report.set_margin_refuted(refuted);
}

void Progress::ReportTheorem(const TheoremContext& context, ConvergenceReport& report) const {
  const auto k = static_cast<double>(run_updates());
  if (k > 0) {
    const double scaled = report.weight_norm() / context.step_size;
    const double in_use =
        scaled * scaled / (k * context.squared_norm_ratio * counters_.squared_radius());
    // Beyond it float32 could not hold steps so small or so large.
    if (in_use > 0 && in_use <= 1 + kNormError) report.set_bound_in_use(std::min(1.0, in_use));
  }
  // Data seen since may have no separator of that margin: then the floor is one of older data.
  const double floor = counters_.margin_floor();
  const bool contradicted = counters_.not_separable() || IsCeilingBelow(report, floor);
  if (floor > 0 && !contradicted)
    ReportFloor(floor, counters_.floor_squared_radius(), context, report);
}

void Progress::ReportFloor(double floor, double squared_radius, const TheoremContext& context,
                           ConvergenceReport& report) const {
  report.set_margin_floor(floor);
  report.clear_update_bound();
  if (BoundApplies(context))
    report.set_update_bound(context.squared_norm_ratio * squared_radius / (floor * floor));
}

// What an analysis proved of some of the data seen bounds what all of them admit; a floor is one of
// exactly the data analysed.
void Progress::ReportAnalysis(const TheoremContext& context, ConvergenceReport& report) const {
  if (!report.has_analysis() || !ComponentsKnown(context)) return;
  v1::Analysis& analysis = *report.mutable_analysis();
  analysis.set_current(IsOneDataSet(context) && analysis.complete() && context.sample_complete &&
                       context.sampled == analysis.examples());
  if (!IsOneDataSet(context)) return;
  if (counters_.analysis_not_separable()) {
    report.set_not_separable(true);
    // As where the updates prove it: a ceiling that was known before must not rise.
    report.set_margin_ceiling(0);
  } else if (counters_.has_analysis_ceiling()) {
    const double ceiling = counters_.analysis_ceiling();
    report.set_margin_ceiling(
        report.has_margin_ceiling() ? std::min(report.margin_ceiling(), ceiling) : ceiling);
  }
  if (context.margin_of_interest > 0 &&
      (counters_.analysis_not_separable() ||
       (counters_.has_analysis_ceiling() &&
        counters_.analysis_ceiling() < context.margin_of_interest)))
    report.set_margin_refuted(true);
  // An absent floor or lower bound reads as 0.
  if (analysis.current() && analysis.margin_lower() > report.margin_floor())
    ReportFloor(analysis.margin_lower(), counters_.squared_radius(), context, report);
  const bool contradicted = report.not_separable() || IsCeilingBelow(report, report.margin_floor());
  if (contradicted) {
    report.clear_margin_floor();
    report.clear_update_bound();
  }
  if (analysis.current() && !contradicted) ReportUpdatesLeft(context, report);
}

// (R / gamma)^2 - k, from the theorem with float32's rounding in it. An update may be off by
// 2^-24 ||theta||, so that after k of them theta / eta lies within 2^-24 k^1.5 R of where it should
// be, and ||theta||^2 / eta^2 is at most k R^2 (1 + 2^-23 k). With both,
// k <= B (1 + 5 2^-24 k) where B = (R / gamma)^2; 2^-21 B instead leaves room for k above B.
void Progress::ReportUpdatesLeft(const TheoremContext& context, ConvergenceReport& report) const {
  constexpr double kMostInflation = 0.1;
  // With smaller steps float32 loses more than its relative precision.
  constexpr double kLeastStep = 0x1p-100;
  const double lower = report.analysis().margin_lower();
  if (!BoundApplies(context) || !(lower > 0) || context.step_size * lower < kLeastStep) return;
  const double bound = context.squared_norm_ratio * counters_.squared_radius() / (lower * lower);
  const double inflation = std::ldexp(bound, -21);
  if (!(inflation <= kMostInflation)) return;
  const auto most = static_cast<uint64_t>(std::floor(bound * (1 + inflation)));
  if (most >= run_updates()) report.set_updates_left(most - run_updates());
}

v1::ConvergenceState Progress::State(const TheoremContext& context,
                                     const ConvergenceReport& report) const {
  if (report.not_separable()) return v1::CONVERGENCE_STATE_NOT_SEPARABLE;
  if (report.margin_refuted()) return v1::CONVERGENCE_STATE_REFUTED;
  const v1::DriftReport& drift = report.drift();
  if (drift.detections() > 0 && report.examples() - drift.last_example() < kWindow)
    return v1::CONVERGENCE_STATE_DRIFTING;
  // What was proven of the data is not known to be true any more either.
  if (!ComponentsKnown(context)) return v1::CONVERGENCE_STATE_UNSPECIFIED;
  const bool converged =
      counters_.has_converged_at() && counters_.converged_at() == report.updates();
  if (converged && ComponentsUnchanged(context)) return v1::CONVERGENCE_STATE_CONVERGED;
  return v1::CONVERGENCE_STATE_LEARNING;
}

}  // namespace perceptrond
