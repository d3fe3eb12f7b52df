#include "core/model/predict_batch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/features/mapper.h"
#include "core/learner/catalogue.h"
#include "core/model/batch_rows.h"
#include "core/model/class_predictions.h"
#include "core/model/error.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Rows evaluated at a time.
constexpr size_t kRowsAtOnce = 64;

// Calls predict(i) for each row that check(i) finds valid, and refuses the others.
// outcome.row_errors holds the rows that were refused before.
template <typename Check, typename Predict>
void PredictRows(Mapper& mapper, size_t rows, PredictOutcome& outcome, const Check& check,
                 const Predict& predict) {
  const std::vector<RowError> before = std::exchange(outcome.row_errors, {});
  auto skip = before.begin();
  for (size_t i = 0; i < rows; ++i) {
    if (skip != before.end() && skip->row == i) {
      outcome.row_errors.push_back(*skip++);
    } else if (const ValidationCode code = check(i); code != ValidationCode::kNone) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), mapper.Describe(i, code)});
    } else {
      predict(i);
    }
  }
}

}  // namespace

void PredictOutcome::Clear() {
  revision = 0;
  age = 0;
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
                          bool include_class_scores, PredictOutcome& outcome) {
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
  if (FindLearner(core.settings.learner).separate_prediction_weights) outcome.age = age;
  const Predictor& predictor = learner.predictor();
  const double squared_norm = predictor.squared_norm(age);
  const double per_norm = squared_norm > 0 ? 1 / std::sqrt(squared_norm) : 0;
  mapper.Resolve(state->names);
  const auto check = [&](size_t i) {
    double squared_norm = 0;
    return mapper.Check(i, &squared_norm);
  };
  if (core.settings.is_multiclass()) {
    ClassPredictions predictions(learner, age, per_norm, include_class_scores, outcome);
    if (absl::Status status = predictions.Begin(rows); !status.ok()) return status;
    PredictRows(mapper, rows, outcome, check,
                [&](size_t i) { predictions.Predict(i, mapper.Map(i)); });
    return absl::OkStatus();
  }
  if (per_norm > 0) outcome.distances.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const Probabilistic* const probabilistic = learner.probabilistic();
  if (probabilistic != nullptr)
    outcome.probabilities.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const auto set = [&](size_t i, double score) {
    outcome.scores[i] = Saturate(score);
    outcome.labels[i] = predictor.Label({&score, 1});
    if (per_norm > 0) outcome.distances[i] = Saturate(score * per_norm);
    if (probabilistic == nullptr) return;
    probabilistic->ToProbabilities({&score, 1});
    outcome.probabilities[i] = Saturate(score);
  };
  if (mapper.PassesThrough()) {
    // Rows in the space of the weights are checked and scored some at a time.
    std::array<ValidationCode, kRowsAtOnce> codes;
    std::array<double, kRowsAtOnce> scores;
    size_t begin = 0;
    size_t end = 0;
    const auto check_scored = [&](size_t i) {
      if (i >= end) {
        begin = i;
        end = std::min(rows, i + kRowsAtOnce);
        predictor.ScoreRows(batch, begin, core.limits.max_example_features, age,
                            std::span(codes).first(end - begin),
                            std::span(scores).first(end - begin));
      }
      return codes[i - begin];
    };
    PredictRows(mapper, rows, outcome, check_scored, [&](size_t i) { set(i, scores[i - begin]); });
  } else {
    PredictRows(mapper, rows, outcome, check, [&](size_t i) {
      double score = 0;
      predictor.Score(mapper.Map(i), age, {&score, 1});
      set(i, score);
    });
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
