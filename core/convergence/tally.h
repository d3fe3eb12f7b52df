// What a stretch of one stream's examples amounted to, gathered without a lock and handed over at
// once: by the progress of the model, and by the pass that the producer is in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/learner/learner.h"
#include "core/learner/settings.h"
#include "core/vector/check.h"

namespace perceptrond {

inline constexpr size_t kValidationCodes = static_cast<size_t>(ValidationCode::kClassCap) + 1;

// Counts of examples that were evaluated on one state of the weights, which the last of them may
// have changed. Not thread-safe.
struct Tally {
  uint64_t examples = 0;
  // Those of them that another server of a fleet evaluated.
  uint64_t examples_elsewhere = 0;
  // At most one each: a stretch ends with its first update, and every mistake calls for one.
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  std::array<uint64_t, kValidationCodes> row_errors{};
  uint64_t row_error_count = 0;
  // An example called for an update that could not be made.
  bool unlearned = false;
  // Examples that count more or less than 1, and updates by such.
  uint64_t weighted_examples = 0;
  uint64_t weighted_updates = 0;
  // Of a composition: what its components answered from.
  std::optional<uint64_t> components;
  // Of the update's change: see LargestWholeStep. Infinity: not known to be exact.
  double whole_step = 0;
  // ||theta|| / eta after the update, and how far its rounding may have moved theta / eta.
  double scaled_norm = 0;
  double rounding = 0;
  // The update left every weight at zero.
  bool at_zero = false;
  // Sum of max(0, -y s).
  double risk = 0;
  // Sum of the rule's own loss.
  double loss = 0;
  // Min of y s.
  double min_score = std::numeric_limits<double>::infinity();
  // Max of ||x||^2 + b^2.
  double squared_radius = 0;

  // squared_norm: the row's, with b^2.
  void AddEvaluation(const Evaluation& evaluation, int32_t label, double squared_norm) {
    const double signed_score = label * evaluation.score;
    ++examples;
    if (signed_score < 0) risk -= signed_score;
    min_score = std::min(min_score, signed_score);
    squared_radius = std::max(squared_radius, squared_norm);
    loss += evaluation.loss;
    if (evaluation.mistake) ++mistakes;
  }
  // Adds examples and row errors of the same state, none of which called for an update.
  void AddUnchanged(const Tally& other) {
    examples += other.examples;
    for (size_t code = 0; code < kValidationCodes; ++code)
      row_errors[code] += other.row_errors[code];
    row_error_count += other.row_error_count;
    weighted_examples += other.weighted_examples;
    risk += other.risk;
    loss += other.loss;
    min_score = std::min(min_score, other.min_score);
    squared_radius = std::max(squared_radius, other.squared_radius);
  }
  void AddRowError(ValidationCode code) {
    ++row_errors[static_cast<size_t>(code)];
    ++row_error_count;
  }
};

// Notes of an update that the learner has just made with this row what the theorem's figures need
// besides that it was made: how far it reached, and how exact its arithmetic was
// (docs/adr/0013-learners.md). Nothing for learners that the theorem does not speak of.
// O(row.size); O(weights) when they have come back to zero.
void NoteUpdate(const LearnerSettings& settings, const Learner& learner, const Row& row,
                const Target& target, Tally& tally);

}  // namespace perceptrond
