#include "core/convergence/pass.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

// Whether `components` is the one that the pass began with.
bool SameComponents(const PassProgress::Stored& pass, std::optional<uint64_t> components) {
  return pass.has_components() == components.has_value() &&
         pass.components() == components.value_or(0);
}

}  // namespace

void PassProgress::Add(const Tally& tally, uint64_t revision) {
  PassSummary& summary = *stored_.mutable_summary();
  summary.set_row_errors(summary.row_errors() + tally.row_error_count);
  // It is not known that the weights get that example right.
  if (tally.unlearned) SetChanged();
  // The end of a batch is an update without an example.
  summary.set_updates(summary.updates() + tally.updates);
  if (tally.examples == 0) return;
  if (summary.examples() == 0) {
    stored_.set_start_revision(revision);
    if (tally.components.has_value()) stored_.set_components(*tally.components);
  }
  if (revision != stored_.start_revision() || !SameComponents(stored_, tally.components) ||
      tally.updates > 0)
    SetChanged();
  summary.set_examples(summary.examples() + tally.examples);
  summary.set_mistakes(summary.mistakes() + tally.mistakes);
  summary.set_risk(summary.risk() + tally.risk);
  summary.set_loss(summary.loss() + tally.loss);
  stored_.set_min_score(stored_.has_min_score() ? std::min(stored_.min_score(), tally.min_score)
                                                : tally.min_score);
  stored_.set_squared_radius(std::max(stored_.squared_radius(), tally.squared_radius));
}

PassSummary PassProgress::End(int64_t number, uint64_t revision, double norm) const {
  PassSummary summary = stored_.summary();
  summary.set_number(number);
  if (summary.examples() == 0) return summary;
  summary.set_error(static_cast<double>(summary.mistakes()) /
                    static_cast<double>(summary.examples()));
  summary.set_converged(!stored_.changed() && revision == stored_.start_revision());
  if (!summary.converged() || !(norm > 0)) return summary;
  // Scores are sums in float64: what they, or the difference of two, may be off by for examples of
  // up to 30,000 features.
  constexpr double kScoreError = 1e-12;
  const double margin =
      stored_.min_score() / norm - kScoreError * std::sqrt(stored_.squared_radius());
  if (margin > 0 && std::isfinite(margin)) summary.set_margin(margin);
  return summary;
}

}  // namespace perceptrond
