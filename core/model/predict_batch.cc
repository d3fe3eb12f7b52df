#include "core/model/predict_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/features/mapper.h"
#include "core/learner/catalogue.h"
#include "core/learner/multiclass.h"
#include "core/model/batch_rows.h"
#include "core/model/class_predictions.h"
#include "core/model/error.h"
#include "core/model/evaluated_rows.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Rows evaluated at a time.
constexpr size_t kRowsAtOnce = 64;

// Calls answer(i) for each row in which check(i) finds no fault, and refuses the others.
// outcome.row_errors holds the rows that were refused before.
template <typename Check, typename Answer>
void PredictRows(Mapper& mapper, size_t rows, PredictOutcome& outcome, const Check& check,
                 const Answer& answer) {
  const std::vector<RowError> before = std::exchange(outcome.row_errors, {});
  auto skip = before.begin();
  for (size_t i = 0; i < rows; ++i) {
    if (skip != before.end() && skip->row == i) {
      outcome.row_errors.push_back(*skip++);
    } else if (const ValidationCode code = check(i); code != ValidationCode::kNone) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), mapper.Describe(i, code)});
    } else {
      answer(i);
    }
  }
}

}  // namespace

void PredictOutcome::Clear() {
  revision = 0;
  fingerprint = 0;
  scores.clear();
  labels.clear();
  distances.clear();
  probabilities.clear();
  class_scores.clear();
  class_probabilities.clear();
  row_errors.clear();
  component_revisions.clear();
}

absl::Status PredictBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, uint64_t min_revision,
                          bool all_scores, PredictOutcome& outcome) {
  outcome.Clear();
  Mapper mapper(core.settings.space, core.expansion, core.limits.max_example_features);
  if (absl::Status status = BeginBatch(batch, mapper); !status.ok()) return status;
  const size_t rows = batch.rows();
  outcome.scores.resize(rows, std::numeric_limits<float>::quiet_NaN());
  outcome.labels.resize(rows, 0);
  outcome.row_errors.assign(row_errors.begin(), row_errors.end());

  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status status = ModelCore::CheckReadable(*state, min_revision); !status.ok())
    return status;
  const Learner& learner = *state->learner;
  outcome.revision = state->revision;
  outcome.fingerprint = core.Fingerprint(*state);
  const uint64_t age = core.Age();
  const double squared_norm = learner.answer_squared_norm(age);
  const double per_norm = squared_norm > 0 ? 1 / std::sqrt(squared_norm) : 0;
  mapper.Resolve(state->names);
  const auto check = [&](size_t i) {
    double squared_norm = 0;
    return mapper.Check(i, &squared_norm);
  };
  if (const Multiclass* const several = learner.multiclass()) {
    ClassPredictions predictions(*several, age, per_norm, all_scores, outcome);
    if (absl::Status status = predictions.Begin(rows); !status.ok()) return status;
    PredictRows(mapper, rows, outcome, check,
                [&](size_t i) { predictions.Predict(i, mapper.Map(i)); });
    return absl::OkStatus();
  }
  if (per_norm > 0) outcome.distances.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const bool has_probability = learner.Probability(0).has_value();
  if (has_probability) outcome.probabilities.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const auto answer = [&](size_t i, double score) {
    outcome.scores[i] = Saturate(score);
    outcome.labels[i] = learner.Predict(score);
    if (per_norm > 0) outcome.distances[i] = Saturate(score * per_norm);
    if (has_probability) outcome.probabilities[i] = Saturate(*learner.Probability(score));
  };
  if (mapper.PassesThrough() &&
      !FindLearner(core.settings.learner.kind).separate_prediction_weights) {
    // Evaluated with any labels: only the scores are used.
    Batch labelled = batch;
    labelled.labels = outcome.labels;
    EvaluatedRows evaluated(labelled, core.limits.max_example_features);
    const auto check_evaluated = [&](size_t i) {
      if (!evaluated.Has(i)) evaluated.Evaluate(learner, i, kRowsAtOnce);
      return evaluated[i].code;
    };
    PredictRows(mapper, rows, outcome, check_evaluated,
                [&](size_t i) { answer(i, evaluated[i].evaluation.score); });
  } else {
    PredictRows(mapper, rows, outcome, check,
                [&](size_t i) { answer(i, learner.Answer(mapper.Map(i), age)); });
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
