// How a model's learning has gone, and what the theory proves about it (ALGORITHMS.md, section 3).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "core/convergence/adwin.h"
#include "core/convergence/analysis/analysis.h"
#include "core/convergence/pass.h"
#include "core/convergence/tally.h"

namespace perceptrond {

// Changes for the worse that the drift detector found. See perceptron.v1.DriftReport.
struct DriftSummary {
  uint64_t detected = 0;
  // The example it was found at, and the error before and after.
  uint64_t last_example = 0;
  double error_before = 0;
  double error_after = 0;
};

// What an analysis of examples that the model judged proved of them. See perceptron.v1.Analysis.
struct AnalysisRecord {
  uint64_t revision = 0;
  // Different ones.
  uint64_t examples = 0;
  // They were all that the model had judged.
  bool complete = false;
  Separability separability = Separability::kUndecided;
  // 0: no separator is known.
  double margin_lower = 0;
  // Infinite: nothing is known.
  double margin_upper = std::numeric_limits<double>::infinity();
  double radius = 0;
  int64_t unix_nanos = 0;
};

// See perceptron.v1.ConvergenceState.
enum class ConvergenceState : uint8_t { kLearning, kConverged, kRefuted, kNotSeparable, kDrifting };

// What outlives the process. See perceptron.v1.ConvergenceReport.
struct Counters {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  std::array<uint64_t, kValidationCodes> rejected{};
  uint64_t streak = 0;
  uint64_t weighted_examples = 0;
  uint64_t weighted_updates = 0;
  // Sum of the rule's own loss.
  double loss = 0;
  // R^2 over the examples judged.
  double squared_radius = 0;
  // The margin that the latest converged pass was separated with, and R^2 over it; 0: none yet.
  double margin_floor = 0;
  double floor_squared_radius = 0;
  std::optional<PassSummary> last_pass;
  // Updates there had been when the latest pass that changed nothing ended.
  std::optional<uint64_t> converged_at;
  // Updates there had been when an example last called for one that could not be made.
  std::optional<uint64_t> unlearned_at;
  // Sum over the updates of their largest change to a weight, while all changes were whole numbers:
  // up to 2^24 float32 holds every weight exactly. Infinity: arithmetic may have rounded.
  double whole_steps = 0;
  // Sum of Tally::rounding over the updates, while arithmetic may have rounded.
  double rounding = 0;
  // The least that (||theta|| / eta + rounding) / k ever was.
  std::optional<double> margin_ceiling;
  // Exact updates from zero came back to zero.
  bool not_separable = false;
  DriftSummary drift;
  // The latest analysis; and what all of them together proved of the data, which more data do not
  // undo: a ceiling (infinity: none), and that nothing separates them.
  std::optional<AnalysisRecord> analysis;
  double analysis_ceiling = std::numeric_limits<double>::infinity();
  bool analysis_not_separable = false;
  // Updates that put other weights in the place of those learned.
  uint64_t adoptions = 0;
  // What the latest of them made; 0 with adoptions: not known.
  uint64_t adopted_revision = 0;
  // Of a composition: what its components answered the latest example from, and how often that was
  // another than before.
  std::optional<uint64_t> components;
  uint64_t component_changes = 0;
};

// A report at one moment: see perceptron.v1.ConvergenceReport, whose fields these are. Absent is
// not known.
struct Report {
  Counters counters;
  std::optional<double> progressive_error;
  std::optional<double> mean_loss;
  std::optional<double> window_error;
  uint64_t window_examples = 0;
  std::optional<double> window_risk;
  std::optional<double> weight_norm;
  // R.
  double radius = 0;
  std::optional<double> margin_ceiling;
  std::optional<double> bound_in_use;
  std::optional<double> margin_floor;
  std::optional<double> update_bound;
  std::optional<bool> margin_refuted;
  // Present where it could be proven: true if it is.
  std::optional<bool> not_separable;
  std::optional<double> error_ceiling;
  // The detector's window.
  uint64_t drift_window_examples = 0;
  double drift_window_error = 0;
  std::optional<ConvergenceState> state;
  // The latest analysis speaks of all data seen. Absent without one, or if that is not known.
  std::optional<bool> analysis_current;
  std::optional<uint64_t> updates_left;
};

// What Report needs to know of the model.
struct TheoremContext {
  // The learner has the theorem and started from zero weights, with every class it may have: the
  // update that makes a class exist need not be on a mistake in Kesler's sense.
  bool applies = false;
  double step_size = 1;
  // ||z||^2 / ||(x, b)||^2: 1 with two labels, 2 with several classes. By Kesler's construction
  // (core/learner/linear_rule.h) the multiclass perceptron is a perceptron on the z, one for each
  // example and rival: a unit theta* that separates the data with margin gamma has
  // theta* . z >= gamma for all of them. So gamma* <= ||theta|| / (eta k), and ||z||^2 <= 2 R^2
  // makes ||theta||^2 <= eta^2 k 2 R^2 and k <= 2 (R / gamma*)^2; if exact updates from zero come
  // back to zero, a positive combination of z vanishes and no theta* exists. A pass without a
  // change has the margin min (s_y - s_r) / ||theta||.
  double squared_norm_ratio = 1;
  // gamma_0; 0: none.
  double margin_of_interest = 0;
  // See CatalogueEntry.
  bool separate_prediction_weights = false;
  // Of a composition: what its components would answer from now; absent: not known.
  bool composed = false;
  std::optional<uint64_t> components;
  // The model's sample: how many different examples it holds, and whether they are all that the
  // model judged.
  uint64_t sampled = 0;
  bool sample_complete = false;
};

// Gathers tallies. Costs O(updates): correct answers are only counted. Not thread-safe:
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
  void AddAnalysis(const AnalysisRecord& analysis);
  // An update that put other weights in the place of those learned.
  void AddWeightReplacement(uint64_t revision);

  const Counters& counters() const { return counters_; }
  // Of the windows, approximately.
  size_t memory_bytes() const {
    return window_.size() * sizeof(WindowMistake) + adwin_.memory_bytes();
  }
  // squared_norm: the weights', augmented.
  Report MakeReport(double squared_norm, const TheoremContext& context) const;
  // What can be said without the weights: counters and the progressive error.
  Report MakeStoredReport() const;

  // Of the error ceiling: it fails with at most this probability.
  static constexpr double kErrorCeilingDelta = 0.05;

 private:
  void AddToDrift(const Tally& tally);
  void AddUnlearned();
  void AddComponents(const Tally& tally);
  void AddToTheorem(const Tally& tally);
  void ReportWindow(Report& report) const;
  void ReportTheorem(double squared_norm, const TheoremContext& context, Report& report) const;
  void ReportErrorCeiling(const TheoremContext& context, Report& report) const;
  // Whether its components can be asked what they would answer now, if it is a composition.
  static bool ComponentsKnown(const TheoremContext& context) {
    return !context.composed || context.components.has_value();
  }
  // The features of the latest examples are what the components would still make of them. So they
  // are of every model that is no composition.
  bool ComponentsStand(const TheoremContext& context) const {
    return !context.composed ||
           (ComponentsKnown(context) &&
            (context.components == counters_.components || counters_.examples == 0));
  }
  // And so are those of all examples: what was proven of the data speaks of them.
  bool OneData(const TheoremContext& context) const {
    return ComponentsStand(context) && counters_.component_changes == 0;
  }
  // The theorem speaks of this run.
  bool TheoremApplies(const TheoremContext& context) const {
    return context.applies && OneData(context) && counters_.weighted_updates == 0 &&
           counters_.adoptions == 0;
  }
  // And of whatever it may yet do on the data seen. Examples that count less than 1 have caused no
  // update yet, but would take more than the bound allows.
  bool BoundApplies(const TheoremContext& context) const {
    return TheoremApplies(context) && counters_.weighted_examples == 0;
  }
  void ReportAnalysis(const TheoremContext& context, Report& report) const;
  void ReportUpdatesLeft(const TheoremContext& context, Report& report) const;
  // Sets it with what it says of updates.
  void ReportFloor(double floor, double squared_radius, const TheoremContext& context,
                   Report& report) const;
  std::optional<ConvergenceState> State(const TheoremContext& context, const Report& report) const;
  // A mistake in the window: the example's number and its loss.
  struct WindowMistake {
    uint64_t example;
    double loss;
  };

  Counters counters_;
  Adwin adwin_;
  uint64_t window_start_ = 0;
  std::deque<WindowMistake> window_;
};

}  // namespace perceptrond
