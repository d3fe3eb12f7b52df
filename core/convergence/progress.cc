#include "core/convergence/progress.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

// 2^24: every whole number up to it is a float32.
constexpr double kExactInFloat32 = 16777216;

// What the norm, a running sum in float64, may be off by, relatively.
constexpr double kNormError = 1e-12;

}  // namespace

void Progress::Add(const Tally& tally) {
  AddComponents(tally);
  counters_.examples += tally.examples;
  counters_.mistakes += tally.mistakes;
  counters_.updates += tally.updates;
  counters_.duplicates += tally.duplicates;
  for (size_t i = 0; tally.rejected_total > 0 && i < kValidationCodes; ++i)
    counters_.rejected[i] += tally.rejected[i];
  counters_.squared_radius = std::max(counters_.squared_radius, tally.squared_radius);
  counters_.weighted_examples += tally.weighted_examples;
  counters_.weighted_updates += tally.weighted_updates;
  counters_.loss += tally.loss;
  counters_.streak = tally.updates > 0 ? 0 : counters_.streak + tally.examples;
  if (tally.unlearned) AddUnlearned();
  AddToDrift(tally);
  AddToTheorem(tally);
  if (tally.mistakes == 0) return;
  // A stretch ends with its mistake, so the mistake is the last example counted.
  window_.push_back({counters_.examples, tally.risk});
  while (window_.front().example + kWindow <= counters_.examples) window_.pop_front();
}

// A pass before was over other features.
void Progress::AddComponents(const Tally& tally) {
  if (tally.examples == 0 || tally.components == counters_.components) return;
  if (counters_.examples > 0) {
    ++counters_.component_changes;
    counters_.converged_at.reset();
  }
  counters_.components = tally.components;
}

// Wrong, or not right by enough, and nothing changed: no run of right answers goes through it, and
// no pass does without a change.
void Progress::AddUnlearned() {
  counters_.streak = 0;
  counters_.converged_at.reset();
  counters_.unlearned_at = counters_.updates;
}

void Progress::AddPass(const PassSummary& pass) {
  counters_.last_pass = pass;
  if (pass.converged) counters_.converged_at = counters_.updates;
  // A pass that was right without a margin that could be measured says nothing of its data's, and
  // what an earlier one attained is no longer the latest's.
  if (pass.converged || pass.margin.has_value()) {
    counters_.margin_floor = pass.margin.value_or(0);
    counters_.floor_squared_radius = pass.squared_radius;
  }
}

void Progress::AddAnalysis(const AnalysisRecord& analysis) {
  counters_.analysis = analysis;
  counters_.analysis_ceiling = std::min(counters_.analysis_ceiling, analysis.margin_upper);
  if (analysis.separability == Separability::kNotSeparable) counters_.analysis_not_separable = true;
}

void Progress::AddWeightReplacement(uint64_t revision) {
  ++counters_.updates;
  ++counters_.adoptions;
  counters_.adopted_revision = revision;
  counters_.streak = 0;
}

Report Progress::MakeStoredReport() const {
  Report report;
  report.counters = counters_;
  report.radius = std::sqrt(counters_.squared_radius);
  if (counters_.examples > 0) {
    report.progressive_error =
        static_cast<double>(counters_.mistakes) / static_cast<double>(counters_.examples);
    report.mean_loss = counters_.loss / static_cast<double>(counters_.examples);
  }
  return report;
}

void Progress::AddToDrift(const Tally& tally) {
  Adwin::Cut cut;
  if (!adwin_.Add(tally.examples - tally.mistakes, tally.mistakes > 0, &cut)) return;
  // An error that falls is learning.
  if (cut.error_after <= cut.error_before) return;
  DriftSummary& drift = counters_.drift;
  ++drift.detected;
  drift.last_example = counters_.examples;
  drift.error_before = cut.error_before;
  drift.error_after = cut.error_after;
}

void Progress::AddToTheorem(const Tally& tally) {
  // Weights that were put in say nothing of the examples' sum.
  if (tally.updates == 0 || counters_.adoptions > 0) return;
  counters_.whole_steps += tally.whole_step;
  if (counters_.whole_steps > kExactInFloat32) counters_.rounding += tally.rounding;
  // Any unit separator with margin g has theta . it >= eta k g, but for what rounding took away.
  const double ceiling = (tally.scaled_norm * (1 + kNormError) + counters_.rounding) /
                         static_cast<double>(counters_.updates);
  counters_.margin_ceiling = std::min(counters_.margin_ceiling.value_or(ceiling), ceiling);
  // Then a positive combination of the examples y (x, b) vanishes: by Gordan's theorem no strict
  // separator exists, and none will.
  if (tally.at_zero && counters_.whole_steps <= kExactInFloat32) counters_.not_separable = true;
}

Report Progress::MakeReport(double squared_norm, const TheoremContext& context) const {
  Report report = MakeStoredReport();
  // A sum of changes that cancel may end a rounding error below zero.
  squared_norm = std::max(0.0, squared_norm);
  report.weight_norm = std::sqrt(squared_norm);
  ReportWindow(report);
  report.drift_window_examples = adwin_.size();
  report.drift_window_error = adwin_.error();
  ReportErrorCeiling(context, report);
  if (TheoremApplies(context)) ReportTheorem(squared_norm, context, report);
  ReportAnalysis(context, report);
  report.state = State(context, report);
  return report;
}

void Progress::ReportWindow(Report& report) const {
  report.window_examples = std::min(kWindow, counters_.examples - window_start_);
  if (report.window_examples == 0) return;
  const uint64_t begin = counters_.examples - report.window_examples;
  double mistakes = 0;
  double risk = 0;
  for (const WindowMistake& mistake : window_) {
    if (mistake.example <= begin) continue;
    ++mistakes;
    risk += mistake.loss;
  }
  report.window_error = mistakes / static_cast<double>(report.window_examples);
  report.window_risk = risk / static_cast<double>(report.window_examples);
}

// For examples drawn independently; a marked pass says that they come again. It is of the weights
// that had the run, and of their first run: the longest of several is longer by luck.
void Progress::ReportErrorCeiling(const TheoremContext& context, Report& report) const {
  if (counters_.updates == 0 || counters_.streak == 0 || counters_.last_pass.has_value()) return;
  if (context.separate_prediction_weights || !OneData(context) ||
      counters_.unlearned_at == counters_.updates)
    return;
  const auto k = static_cast<double>(counters_.updates);
  const double ceiling =
      std::log(k * (k + 1) / kErrorCeilingDelta) / static_cast<double>(counters_.streak);
  if (ceiling < 1) report.error_ceiling = ceiling;
}

void Progress::ReportTheorem(double squared_norm, const TheoremContext& context,
                             Report& report) const {
  report.not_separable = counters_.not_separable;
  const auto k = static_cast<double>(counters_.updates);
  if (k > 0) {
    if (counters_.margin_ceiling.has_value() && std::isfinite(*counters_.margin_ceiling))
      report.margin_ceiling = counters_.margin_ceiling;
    const double scaled = *report.weight_norm / context.step_size;
    const double in_use =
        scaled * scaled / (k * context.squared_norm_ratio * counters_.squared_radius);
    // Beyond it float32 could not hold steps so small or so large.
    if (in_use > 0 && in_use <= 1 + kNormError) report.bound_in_use = std::min(1.0, in_use);
  }
  // Data seen since may have no separator of that margin: then the floor is one of older data.
  const bool contradicted =
      counters_.not_separable ||
      (report.margin_ceiling.has_value() && *report.margin_ceiling < counters_.margin_floor);
  if (counters_.margin_floor > 0 && !contradicted)
    ReportFloor(counters_.margin_floor, counters_.floor_squared_radius, context, report);
  if (context.margin_of_interest > 0) {
    report.margin_refuted =
        counters_.not_separable ||
        (report.margin_ceiling.has_value() && *report.margin_ceiling < context.margin_of_interest);
  }
}

void Progress::ReportFloor(double floor, double squared_radius, const TheoremContext& context,
                           Report& report) const {
  report.margin_floor = floor;
  report.update_bound.reset();
  if (BoundApplies(context))
    report.update_bound = context.squared_norm_ratio * squared_radius / (floor * floor);
}

// What an analysis proved of some of the data seen bounds what all of them admit; a floor is one of
// exactly the data analysed.
void Progress::ReportAnalysis(const TheoremContext& context, Report& report) const {
  if (!counters_.analysis.has_value()) return;
  const AnalysisRecord& analysis = *counters_.analysis;
  if (!ComponentsKnown(context)) return;
  report.analysis_current = OneData(context) && analysis.complete && context.sample_complete &&
                            context.sampled == analysis.examples;
  if (!OneData(context)) return;
  const double ceiling = counters_.analysis_ceiling;
  if (counters_.analysis_not_separable) {
    report.not_separable = true;
  } else if (std::isfinite(ceiling)) {
    report.margin_ceiling = std::min(report.margin_ceiling.value_or(ceiling), ceiling);
  }
  if (context.margin_of_interest > 0 &&
      (counters_.analysis_not_separable || ceiling < context.margin_of_interest))
    report.margin_refuted = true;
  if (*report.analysis_current && analysis.margin_lower > report.margin_floor.value_or(0))
    ReportFloor(analysis.margin_lower, counters_.squared_radius, context, report);
  const bool contradicted =
      report.not_separable.value_or(false) ||
      (report.margin_ceiling.has_value() && *report.margin_ceiling < report.margin_floor);
  if (contradicted) {
    report.margin_floor.reset();
    report.update_bound.reset();
  }
  if (*report.analysis_current && !contradicted) ReportUpdatesLeft(context, report);
}

// (R / gamma)^2 - k, from the theorem with float32's rounding in it. An update may be off by
// 2^-24 ||theta||, so that after k of them theta / eta lies within 2^-24 k^1.5 R of where it should
// be, and ||theta||^2 / eta^2 is at most k R^2 (1 + 2^-23 k). With both,
// k <= B (1 + 5 2^-24 k) where B = (R / gamma)^2; 2^-21 B instead leaves room for k above B.
void Progress::ReportUpdatesLeft(const TheoremContext& context, Report& report) const {
  constexpr double kMostInflation = 0.1;
  // Steps so small that float32 loses more than its relative precision.
  constexpr double kLeastStep = 0x1p-100;
  const double lower = counters_.analysis->margin_lower;
  if (!BoundApplies(context) || !(lower > 0) || context.step_size * lower < kLeastStep) return;
  const double bound = context.squared_norm_ratio * counters_.squared_radius / (lower * lower);
  const double inflation = std::ldexp(bound, -21);
  if (!(inflation <= kMostInflation)) return;
  const auto most = static_cast<uint64_t>(std::floor(bound * (1 + inflation)));
  if (most >= counters_.updates) report.updates_left = most - counters_.updates;
}

std::optional<ConvergenceState> Progress::State(const TheoremContext& context,
                                                const Report& report) const {
  if (report.not_separable.value_or(false)) return ConvergenceState::kNotSeparable;
  if (report.margin_refuted.value_or(false)) return ConvergenceState::kRefuted;
  const DriftSummary& drift = counters_.drift;
  if (drift.detected > 0 && counters_.examples - drift.last_example < kWindow)
    return ConvergenceState::kDrifting;
  // What was proven of the data is not known to be true any more either.
  if (!ComponentsKnown(context)) return std::nullopt;
  if (counters_.converged_at == counters_.updates && ComponentsStand(context))
    return ConvergenceState::kConverged;
  return ConvergenceState::kLearning;
}

}  // namespace perceptrond
