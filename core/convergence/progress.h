// The convergence report of a model: how its learning goes, and what the theory proves about it
// (docs/convergence.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/convergence/adwin.h"
#include "core/convergence/pass.h"
#include "core/convergence/tally.h"
#include "perceptron/storage/v1/journal.pb.h"
#include "perceptron/v1/report.pb.h"

namespace perceptrond {

// The report itself: proto/perceptron/v1/report.proto says what each figure means, and its options
// define metric, text and page.
using ::perceptron::v1::ConvergenceReport;

// What a report needs to know about the model.
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
  // gamma_0, the model's margin of interest; 0 if it has none.
  double margin_of_interest = 0;
  // See CatalogueEntry.
  bool separate_prediction_weights = false;
  // Whether the model is a composition, and the hash of its components' current states; absent: not
  // known.
  bool composed = false;
  std::optional<uint64_t> components;
  // How many different examples the model's sample holds, and whether they are all that the model
  // evaluated.
  uint64_t sampled = 0;
  bool sample_complete = false;
};

// The counters of a model that goes back from `now` to the state that had the counters `kept`, by an
// update of its own. What was counted stays, as does what was proven of the data; what the theorem
// counts is that of the run that goes on.
::perceptron::storage::v1::Counters RollBackCounters(
    const ::perceptron::storage::v1::Counters& now,
    const ::perceptron::storage::v1::Counters& kept);

// Adds up tallies and reports on them. Costs O(updates): right examples are only counted. Not
// thread-safe: core/ledger/ledger.h guards it.
class Progress {
 public:
  using Counters = ::perceptron::storage::v1::Counters;

  // Examples in the window of the window's error and risk.
  static constexpr uint64_t kWindow = 1000;
  // The error ceiling fails with at most this probability.
  static constexpr double kErrorCeilingDelta = 0.05;

  Progress() = default;
  // Continues from stored counters, which have the window to within kBucket examples; that of drift begins
  // anew.
  explicit Progress(const Counters& counters);

  // Examples come from a stream, or, once their producer has marked the end of a pass, are known data:
  // the error over passes says nothing of a drift.
  enum class Source { kStream, kKnownData };

  // Adds a stretch of examples that was evaluated on the weights after the latest update added.
  void Add(const Tally& tally, Source source = Source::kStream);
  // Adds one, without updates, that was evaluated on earlier weights: it is not of their streak.
  void AddLate(const Tally& tally, Source source);
  // Adds a finished pass; squared_radius: R^2 over it.
  void AddPass(const PassSummary& pass, double squared_radius);
  // Adds what an analysis proved; its `current` is not looked at.
  void AddAnalysis(const ::perceptron::v1::Analysis& analysis);
  // Adds the update that made `revision` by replacing all weights. The windows begin anew.
  void AddWeightReplacement(uint64_t revision);
  // Adds the update that made `revision` by giving all examples other features: figures of the data
  // begin again.
  void AddInputChange(uint64_t revision);

  // The counters' `sampled` and `sample_complete` are not kept here, and the window is not in them.
  const Counters& counters() const { return counters_; }
  // The same with the window. Equal whether the model was loaded meanwhile or not.
  Counters StoredCounters() const;
  // Bytes that the windows take, approximately.
  size_t memory_bytes() const {
    return window_.size() * sizeof(WindowMistakes) + adwin_.memory_bytes();
  }
  // squared_norm: the weights', augmented.
  ConvergenceReport MakeReport(double squared_norm, const TheoremContext& context) const;
  // What can be said without the weights: the counted figures, the ratios of them, the window and the state.
  ConvergenceReport MakeStoredReport(const TheoremContext& context) const;

 private:
  // Mistakes in the window: one, or those of a bucket that was restored. The number of the example, counted from 1,
  // or one amid the bucket; and their perceptron risk.
  struct WindowMistakes {
    uint64_t example;
    uint64_t mistakes;
    double risk;
  };
  // Mistakes are stored by as many examples.
  static constexpr uint64_t kBucket = 100;

  // The examples before the window.
  uint64_t WindowBegin() const;
  void RestoreWindow();
  // Empties the window and that of drift: their errors are other weights' than the next example's.
  void BeginWindows();
  void AddCounts(const Tally& tally);
  void AddToDrift(const Tally& tally);
  void AddUnlearned();
  void AddComponents(const Tally& tally);
  void AddToTheorem(const Tally& tally);
  // The counted figures and the ratios of them.
  ConvergenceReport CountedReport() const;
  void ReportWindow(ConvergenceReport& report) const;
  void ReportDrift(ConvergenceReport& report) const;
  void ReportProofs(const TheoremContext& context, ConvergenceReport& report) const;
  void ReportTheorem(const TheoremContext& context, ConvergenceReport& report) const;
  void ReportErrorCeiling(const TheoremContext& context, ConvergenceReport& report) const;
  void ReportAnalysis(const TheoremContext& context, ConvergenceReport& report) const;
  void ReportUpdatesLeft(const TheoremContext& context, ConvergenceReport& report) const;
  // Sets the margin floor and the bound on updates that follows from it.
  void ReportFloor(double floor, double squared_radius, const TheoremContext& context,
                   ConvergenceReport& report) const;
  ::perceptron::v1::ConvergenceState State(const TheoremContext& context,
                                           const ConvergenceReport& report) const;

  uint64_t updates() const { return counters_.report().updates(); }
  // k of the theorem: the updates of the run that made the weights.
  uint64_t run_updates() const { return updates() - counters_.undone_updates(); }
  // The model is no composition, or its components' states are known.
  static bool ComponentsKnown(const TheoremContext& context) {
    return !context.composed || context.components.has_value();
  }
  // The latest examples would have the same features today: the model is no composition, or its
  // components are as they were.
  bool ComponentsUnchanged(const TheoremContext& context) const;
  // So would all examples: what was proven of the data holds for them.
  bool IsOneDataSet(const TheoremContext& context) const {
    return ComponentsUnchanged(context) && counters_.component_changes() == 0;
  }
  // What the updates proved of the data seen is known.
  bool ProofsApply(const TheoremContext& context) const {
    return context.applies && IsOneDataSet(context) && counters_.weighted_updates() == 0;
  }
  // The theorem holds for the run so far.
  bool TheoremApplies(const TheoremContext& context) const {
    return ProofsApply(context) && counters_.weight_replacements() == 0;
  }
  // It also holds for whatever the run may yet do on the data seen. Examples that count less than 1
  // have caused no update so far, but would take more than the bound allows.
  bool BoundApplies(const TheoremContext& context) const {
    return TheoremApplies(context) && counters_.weighted_examples() == 0;
  }

  Counters counters_;
  Adwin adwin_;
  uint64_t window_start_ = 0;
  std::deque<WindowMistakes> window_;
};

}  // namespace perceptrond
