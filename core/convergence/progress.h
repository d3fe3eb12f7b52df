// How a model's learning has gone, and what the theory proves about it (ALGORITHMS.md, section 3).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/convergence/pass.h"
#include "core/convergence/tally.h"

namespace perceptrond {

// What outlives the process. See perceptron.v1.ConvergenceReport.
struct Counters {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  std::array<uint64_t, kFaults> rejected{};
  uint64_t streak = 0;
  // R^2 over the examples judged.
  double squared_radius = 0;
  // The margin that the latest converged pass was separated with, and R^2 over it; 0: none yet.
  double margin_floor = 0;
  double floor_squared_radius = 0;
  std::optional<PassSummary> last_pass;
};

// A report at one moment: see perceptron.v1.ConvergenceReport, whose fields these are. Absent is
// not known.
struct Report {
  Counters counters;
  std::optional<double> progressive_error;
  std::optional<double> window_error;
  uint64_t window_examples = 0;
  std::optional<double> window_risk;
  double weight_norm = 0;
  // R.
  double radius = 0;
  std::optional<double> margin_ceiling;
  std::optional<double> bound_in_use;
  std::optional<double> margin_floor;
  std::optional<double> update_bound;
  std::optional<bool> margin_refuted;
};

// What Report needs to know of the model.
struct TheoremContext {
  // The learner has the theorem and started from zero weights.
  bool applies = false;
  double step_size = 1;
  // gamma_0; 0: none.
  double margin_of_interest = 0;
};

// Gathers tallies. Costs O(mistakes): correct answers are only counted. Not thread-safe:
// core/model/ledger.h guards it.
class Progress {
 public:
  static constexpr uint64_t kWindow = 1000;

  Progress() = default;
  // Goes on from stored counters; the window begins anew.
  explicit Progress(const Counters& counters)
      : counters_(counters), window_start_(counters.examples) {}

  void Add(const Tally& tally);
  void AddPass(const PassSummary& pass);
  // Examples that a producer knows were answered, and correctly, before a power failure took their
  // count.
  void AddRecovered(uint64_t examples) { counters_.examples += examples; }

  const Counters& counters() const { return counters_; }
  // squared_norm: the weights', augmented.
  Report MakeReport(double squared_norm, const TheoremContext& context) const;
  // What can be said without the weights: counters and the progressive error.
  Report MakeStoredReport() const;

 private:
  // A mistake in the window: the example's number and its loss.
  struct WindowMistake {
    uint64_t example;
    double loss;
  };

  Counters counters_;
  uint64_t window_start_ = 0;
  std::deque<WindowMistake> window_;
};

}  // namespace perceptrond
