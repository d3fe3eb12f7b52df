// How a batch is predicted: scored under the shared lock on one revision, which the answer names.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/class_answers.h"
#include "core/model/error.h"
#include "core/model/malformed.h"
#include "core/model/model.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Rows scored at a time.
constexpr size_t kRowsTogether = 64;

// Answers each row that check(i) finds no fault with, and refuses the others. outcome.refused holds
// the rows found bad beforehand.
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

absl::Status Model::CheckAnswers(uint64_t min_revision) const {
  if (!closed_.ok() || revision_ >= min_revision) return closed_;
  return MakeError(
      absl::StatusCode::kAborted, "REVISION_TOO_OLD",
      absl::StrCat("the model stands at revision ", revision_, ", below ", min_revision),
      {{"revision", absl::StrCat(revision_)}});
}

bool Model::has_probabilities() const {
  ReaderMutexLock lock(&mutex_);
  return learner_->probabilistic() != nullptr;
}

absl::Status Model::Predict(const Batch& batch, std::span<const RowError> row_errors,
                            uint64_t min_revision, PredictOutcome& outcome, bool all_scores) const {
  if (settings_.components.empty())
    return PredictOwn(batch, row_errors, min_revision, outcome, all_scores);
  ComposedBatch composed;
  absl::Status status = Compose(settings_.components, components_, batch, row_errors, composed);
  if (!status.ok()) return status;
  status = PredictOwn(composed.batch, composed.row_errors, min_revision, outcome, all_scores);
  outcome.fingerprint = CombineFingerprints(outcome.fingerprint, composed.fingerprint);
  outcome.component_revisions = std::move(composed.revisions);
  return status;
}

absl::Status Model::PredictOwn(const Batch& batch, std::span<const RowError> row_errors,
                               uint64_t min_revision, PredictOutcome& outcome,
                               bool all_scores) const {
  outcome.Clear();
  if (ValidationError error = CheckColumns(batch)) return Malformed(error);
  Mapper mapper(settings_.space, expansion_, limits_.max_example_features);
  if (ValidationError error = mapper.Begin(batch)) return Malformed(error);
  const size_t rows = batch.rows();
  outcome.scores.resize(rows, std::numeric_limits<float>::quiet_NaN());
  outcome.labels.resize(rows, 0);
  outcome.row_errors.assign(row_errors.begin(), row_errors.end());

  ReaderMutexLock lock(&mutex_);
  if (absl::Status status = CheckAnswers(min_revision); !status.ok()) return status;
  outcome.revision = revision_;
  outcome.fingerprint = OwnFingerprint();
  const uint64_t age = Age();
  const double squared_norm = learner_->predictor().squared_norm(age);
  const double per_norm = squared_norm > 0 ? 1 / std::sqrt(squared_norm) : 0;
  mapper.Resolve(dictionary_);
  const auto check = [&](size_t i) {
    double squared_norm = 0;
    return mapper.Check(i, &squared_norm);
  };
  if (settings_.is_multiclass()) {
    ClassAnswers answers(*learner_, age, per_norm, all_scores, outcome);
    if (absl::Status status = answers.Begin(rows); !status.ok()) return status;
    PredictRows(mapper, rows, outcome, check, [&](size_t i) { answers.Answer(i, mapper.Map(i)); });
    return absl::OkStatus();
  }
  if (per_norm > 0) outcome.distances.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const Predictor& predictor = learner_->predictor();
  const Probabilistic* const probabilistic = learner_->probabilistic();
  if (probabilistic != nullptr)
    outcome.probabilities.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const auto answer = [&](size_t i, double score) {
    outcome.scores[i] = Saturate(score);
    outcome.labels[i] = predictor.Label({&score, 1});
    if (per_norm > 0) outcome.distances[i] = Saturate(score * per_norm);
    if (probabilistic == nullptr) return;
    probabilistic->ToProbabilities({&score, 1});
    outcome.probabilities[i] = Saturate(score);
  };
  if (mapper.PassesThrough()) {
    // Rows in the weights' space are checked and scored together.
    std::array<ValidationCode, kRowsTogether> codes;
    std::array<double, kRowsTogether> scores;
    size_t begin = 0;
    size_t end = 0;
    const auto check_scored = [&](size_t i) {
      if (i >= end) {
        begin = i;
        end = std::min(rows, i + kRowsTogether);
        predictor.ScoreRows(batch, begin, limits_.max_example_features, age,
                            std::span(codes).first(end - begin),
                            std::span(scores).first(end - begin));
      }
      return codes[i - begin];
    };
    PredictRows(mapper, rows, outcome, check_scored,
                [&](size_t i) { answer(i, scores[i - begin]); });
  } else {
    PredictRows(mapper, rows, outcome, check, [&](size_t i) {
      double score = 0;
      predictor.Score(mapper.Map(i), age, {&score, 1});
      answer(i, score);
    });
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
