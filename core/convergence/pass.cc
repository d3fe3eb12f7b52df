#include "core/convergence/pass.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {

void PassProgress::Add(const Tally& tally, uint64_t judged_on) {
  rejected += tally.rejected_total;
  // Nobody can say that the weights get it right.
  if (tally.unlearned) changed = true;
  // The end of a batch is an update without an example.
  updates += tally.updates;
  if (tally.examples == 0) return;
  if (examples == 0) {
    start_revision = judged_on;
    components = tally.components;
  }
  if (judged_on != start_revision || tally.components != components || tally.updates > 0)
    changed = true;
  examples += tally.examples;
  mistakes += tally.mistakes;
  risk += tally.risk;
  loss += tally.loss;
  min_score = std::min(min_score, tally.min_score);
  squared_radius = std::max(squared_radius, tally.squared_radius);
}

PassSummary PassProgress::End(int64_t number, uint64_t revision, double norm) const {
  PassSummary summary;
  summary.number = number;
  summary.examples = examples;
  summary.mistakes = mistakes;
  summary.updates = updates;
  summary.rejected = rejected;
  summary.risk = risk;
  summary.loss = loss;
  summary.squared_radius = squared_radius;
  summary.converged = examples > 0 && !changed && revision == start_revision;
  if (!summary.converged || !(norm > 0)) return summary;
  // Scores are sums in float64: what they, or the difference of two, may be off by for examples of
  // up to 30,000 features.
  constexpr double kScoreError = 1e-12;
  const double margin = min_score / norm - kScoreError * std::sqrt(squared_radius);
  if (margin > 0 && std::isfinite(margin)) summary.margin = margin;
  return summary;
}

}  // namespace perceptrond
