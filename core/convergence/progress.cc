#include "core/convergence/progress.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {

void Progress::Add(const Tally& tally) {
  counters_.examples += tally.examples;
  counters_.mistakes += tally.mistakes;
  counters_.updates += tally.updates;
  counters_.duplicates += tally.duplicates;
  for (size_t i = 0; tally.rejected_total > 0 && i < kFaults; ++i)
    counters_.rejected[i] += tally.rejected[i];
  counters_.squared_radius = std::max(counters_.squared_radius, tally.squared_radius);
  counters_.streak = tally.mistakes > 0 ? 0 : counters_.streak + tally.examples;
  if (tally.mistakes == 0) return;
  // A stretch ends with its mistake, so the mistake is the last example counted.
  window_.push_back({counters_.examples, tally.risk});
  while (window_.front().example + kWindow <= counters_.examples) window_.pop_front();
}

void Progress::AddPass(const PassSummary& pass) {
  counters_.last_pass = pass;
  if (pass.margin.has_value()) {
    counters_.margin_floor = *pass.margin;
    counters_.floor_squared_radius = pass.squared_radius;
  }
}

Report Progress::MakeStoredReport() const {
  Report report;
  report.counters = counters_;
  report.radius = std::sqrt(counters_.squared_radius);
  if (counters_.examples > 0) {
    report.progressive_error =
        static_cast<double>(counters_.mistakes) / static_cast<double>(counters_.examples);
  }
  return report;
}

Report Progress::MakeReport(double squared_norm, const TheoremContext& context) const {
  Report report = MakeStoredReport();
  // A sum of changes that cancel may end a rounding error below zero.
  squared_norm = std::max(0.0, squared_norm);
  report.weight_norm = std::sqrt(squared_norm);
  report.window_examples = std::min(kWindow, counters_.examples - window_start_);
  if (report.window_examples > 0) {
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
  if (!context.applies) return report;
  const auto k = static_cast<double>(counters_.updates);
  if (k > 0) {
    report.margin_ceiling = report.weight_norm / (context.step_size * k);
    if (counters_.squared_radius > 0) {
      report.bound_in_use =
          squared_norm / (context.step_size * context.step_size * k * counters_.squared_radius);
    }
  }
  // Data seen since may have no separator of that margin: then the floor is one of older data.
  const bool contradicted =
      report.margin_ceiling.has_value() && *report.margin_ceiling < counters_.margin_floor;
  if (counters_.margin_floor > 0 && !contradicted) {
    report.margin_floor = counters_.margin_floor;
    report.update_bound =
        counters_.floor_squared_radius / (counters_.margin_floor * counters_.margin_floor);
  }
  if (context.margin_of_interest > 0) {
    report.margin_refuted =
        report.margin_ceiling.has_value() && *report.margin_ceiling < context.margin_of_interest;
  }
  return report;
}

}  // namespace perceptrond
