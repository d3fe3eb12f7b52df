// What a rollback makes of a model's counters.
#include "core/convergence/progress.h"

namespace perceptrond {

namespace storage = ::perceptron::storage::v1;

namespace {

// What was proven since then is of examples with other features.
void TakeProofs(const storage::Counters& kept, storage::Counters& counters) {
  counters.set_inputs_changed_at(counters.report().updates());
  counters.set_squared_radius(kept.squared_radius());
  counters.set_margin_floor(kept.margin_floor());
  counters.set_floor_squared_radius(kept.floor_squared_radius());
  counters.clear_margin_ceiling();
  if (kept.has_margin_ceiling()) counters.set_margin_ceiling(kept.margin_ceiling());
  counters.set_not_separable(kept.not_separable());
  counters.clear_analysis_ceiling();
  if (kept.has_analysis_ceiling()) counters.set_analysis_ceiling(kept.analysis_ceiling());
  counters.set_analysis_not_separable(kept.analysis_not_separable());
}

}  // namespace

storage::Counters RollBackCounters(const storage::Counters& now, const storage::Counters& kept) {
  storage::Counters counters = now;
  ConvergenceReport& report = *counters.mutable_report();
  report.set_updates(now.report().updates() + 1);
  report.set_streak(0);
  // The run that goes on has the updates and examples that it had then.
  counters.set_undone_updates(report.updates() - kept.report().updates() + kept.undone_updates());
  counters.set_undone_examples(report.examples() - kept.report().examples() +
                               kept.undone_examples());
  counters.set_whole_steps(kept.whole_steps());
  counters.set_rounding(kept.rounding());
  counters.set_weight_replacements(kept.weight_replacements());
  counters.set_replaced_at(kept.replaced_at());
  // The margin ceiling and the proof that nothing separates come from the run's updates, and are of all
  // data seen; but for a run whose examples counted more or less than 1, of which they are not true.
  if (now.weighted_updates() != kept.weighted_updates()) {
    counters.clear_margin_ceiling();
    if (kept.has_margin_ceiling()) counters.set_margin_ceiling(kept.margin_ceiling());
    counters.set_not_separable(kept.not_separable());
  }
  counters.set_weighted_updates(kept.weighted_updates());
  if (now.inputs_changed_at() != kept.inputs_changed_at()) TakeProofs(kept, counters);
  counters.clear_converged_at();
  counters.clear_unlearned_at();
  // The errors in the window are another state's: it begins anew.
  counters.set_window_start(report.examples());
  counters.set_window_end(report.examples());
  counters.clear_window_mistakes();
  counters.clear_window_risks();
  // The examples that are stored are those of then.
  counters.set_sampled(kept.sampled());
  counters.set_sample_bytes(kept.sample_bytes());
  counters.set_sample_complete(false);
  return counters;
}

}  // namespace perceptrond
