// How a batch is predicted.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/features/mapper.h"
#include "core/learner/catalogue.h"
#include "core/learner/decision.h"
#include "core/model/batch_rows.h"
#include "core/model/cost.h"
#include "core/model/model.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// The predictions of one batch by a model of several classes: the winner, and on request every
// class. Keeps references to what it is given. Not thread-safe.
class ClassPredictions {
 public:
  // age: examples evaluated. per_norm: 1 / ||W||, or 0 while the weights are zero.
  ClassPredictions(const Learner& learner, uint64_t age, double per_norm, bool include_class_scores,
                   PredictOutcome& outcome)
      : predictor_(learner.predictor()),
        probabilistic_(learner.probabilistic()),
        age_(age),
        per_norm_(per_norm),
        all_scores_(include_class_scores),
        outcome_(outcome),
        scores_(predictor_.scores()) {}

  // Allocates the outcome of `rows` rows, none of them predicted yet. INVALID_ARGUMENT
  // (TOO_MANY_SCORES).
  absl::Status Begin(size_t rows);
  // Predicts row i. O(classes x row.size).
  void Predict(size_t i, const Row& row);

 private:
  void SetProbabilities(size_t i, int32_t winner);
  void CopyScores(size_t i, std::vector<float>& all) const;

  const Predictor& predictor_;
  // Null: there are no probabilities.
  const Probabilistic* const probabilistic_;
  const uint64_t age_;
  const double per_norm_;
  const bool all_scores_;
  PredictOutcome& outcome_;
  std::vector<double> scores_;
};

absl::Status ClassPredictions::Begin(size_t rows) {
  const size_t all = rows * scores_.size();
  if (all_scores_ && all > Model::kMaxClassScores) {
    return InvalidField("TOO_MANY_SCORES", "include_class_scores",
                        absl::StrCat(rows, " examples have ", all, " scores of ", scores_.size(),
                                     " classes; an answer holds at most ", Model::kMaxClassScores,
                                     ": send fewer at a time"));
  }
  size_t known = 0;
  for (size_t k = 0; k < scores_.size(); ++k) known += predictor_.HasLabel(static_cast<int32_t>(k));
  outcome_.labels.assign(rows, -1);
  if (per_norm_ > 0 && known > 1) outcome_.distances.assign(rows, kNoScore);
  if (probabilistic_ != nullptr) outcome_.probabilities.assign(rows, kNoScore);
  if (!all_scores_) return absl::OkStatus();
  outcome_.class_scores.assign(all, kNoScore);
  if (probabilistic_ != nullptr) outcome_.class_probabilities.assign(all, kNoScore);
  return absl::OkStatus();
}

void ClassPredictions::Predict(size_t i, const Row& row) {
  predictor_.Score(row, age_, scores_);
  const int32_t winner = predictor_.Label(scores_);
  outcome_.labels[i] = winner;
  if (winner < 0) {
    outcome_.scores[i] = 0;
    return;
  }
  const double score = scores_[static_cast<size_t>(winner)];
  outcome_.scores[i] = Saturate(score);
  if (!outcome_.distances.empty()) {
    const int32_t next = GreatestScore(scores_, winner);
    outcome_.distances[i] = Saturate((score - scores_[static_cast<size_t>(next)]) * per_norm_);
  }
  if (all_scores_) CopyScores(i, outcome_.class_scores);
  if (probabilistic_ != nullptr) SetProbabilities(i, winner);
}

void ClassPredictions::SetProbabilities(size_t i, int32_t winner) {
  probabilistic_->ToProbabilities(scores_);
  outcome_.probabilities[i] = static_cast<float>(scores_[static_cast<size_t>(winner)]);
  if (all_scores_) CopyScores(i, outcome_.class_probabilities);
}

void ClassPredictions::CopyScores(size_t i, std::vector<float>& all) const {
  for (size_t k = 0; k < scores_.size(); ++k)
    all[i * scores_.size() + k] = std::isnan(scores_[k]) ? kNoScore : Saturate(scores_[k]);
}

// Rows evaluated at a time.
constexpr size_t kRowsAtOnce = 64;
// What a row takes besides its features, in multiply-adds.
constexpr size_t kPredictWork = 100;

ValidationError UnknownFeature(const Batch& batch, size_t i, absl::string_view name) {
  ValidationError error{ValidationCode::kUnknownFeature, "feature_names",
                        absl::StrCat("the model has no weight for \"", name.substr(0, 40),
                                     "\"; leave it out, or let unknown features be ignored")};
  const Row row = batch.row(i);
  for (size_t j = 0; j < row.size && batch.names != nullptr && !error.position.has_value(); ++j) {
    // A feature map has names of its own.
    if (batch.names->name(row.index(j)) == name) error.position = j;
  }
  return error;
}

// Calls predict(i) for each row that check(i) finds valid, and adds the others to
// outcome.row_errors, which holds the rows with errors found earlier. StoppedError.
template <typename Check, typename Predict>
absl::Status PredictRows(Mapper& mapper, const Batch& batch, PredictOutcome& outcome,
                         const Check& check, const Predict& predict) {
  const size_t rows = batch.rows();
  std::vector<absl::string_view> unknown;
  // Of a row that is to be refused for it.
  const auto unknown_name = [&](size_t i) {
    if (batch.refuses_unknown_features) mapper.UnknownNames(i, unknown);
    return unknown.empty() ? absl::string_view() : unknown.front();
  };
  const std::vector<RowError> before = std::exchange(outcome.row_errors, {});
  auto skip = before.begin();
  for (size_t i = 0; i < rows; ++i) {
    if (skip != before.end() && skip->row == i) {
      outcome.row_errors.push_back(*skip++);
    } else if (const ValidationCode code = check(i); code != ValidationCode::kNone) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), mapper.Describe(i, code)});
    } else if (const absl::string_view name = unknown_name(i); !name.empty()) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), UnknownFeature(batch, i, name)});
    } else {
      predict(i);
    }
    if (!KeepGoing(kPredictWork)) return StoppedError();
  }
  return absl::OkStatus();
}

}  // namespace

void PredictOutcome::Clear() {
  revision = 0;
  epoch = 0;
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
  outcome.scores.resize(rows, kNoScore);
  outcome.labels.resize(rows, 0);
  outcome.row_errors.assign(row_errors.begin(), row_errors.end());

  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status status = core.CheckReadable(*state, min_revision); !status.ok()) return status;
  core.MarkScored();
  const Learner& learner = *state->learner;
  outcome.revision = state->revision;
  outcome.epoch = core.epoch.load(std::memory_order_acquire);
  outcome.fingerprint = core.Fingerprint(*state);
  const uint64_t age = core.Age();
  if (FindLearner(core.settings.learner).separate_prediction_weights) outcome.age = age;
  const Predictor& predictor = learner.predictor();
  const double squared_norm = predictor.squared_norm(age);
  const double per_norm = squared_norm > 0 ? 1 / std::sqrt(squared_norm) : 0;
  const auto cost_of = [&](const Batch& some, uint64_t /*before*/) {
    return EstimateCost(core.expansion.get(), core.settings, learner,
                        core.limits.max_example_features, some);
  };
  const absl::StatusOr<uint64_t> cost =
      CheckCost(batch, core.limits.max_message_cost, cost_of, outcome.row_errors);
  if (!cost.ok()) return cost.status();
  const LargeWork large(core, *cost);
  mapper.Resolve(state->names, state->frequencies);
  const auto check = [&](size_t i) {
    double squared_norm = 0;
    return mapper.Check(i, &squared_norm);
  };
  if (core.settings.is_multiclass()) {
    ClassPredictions predictions(learner, age, per_norm, include_class_scores, outcome);
    if (absl::Status status = predictions.Begin(rows); !status.ok()) return status;
    return PredictRows(mapper, batch, outcome, check, [&](size_t i) {
      const Row row = mapper.Map(i);
      if (KeepGoing(row.size * predictor.scores())) predictions.Predict(i, row);
    });
  }
  if (per_norm > 0) outcome.distances.resize(rows, kNoScore);
  const Probabilistic* const probabilistic = learner.probabilistic();
  if (probabilistic != nullptr) outcome.probabilities.resize(rows, kNoScore);
  const auto set = [&](size_t i, double score) {
    outcome.scores[i] = Saturate(score);
    outcome.labels[i] = predictor.Label({&score, 1});
    if (per_norm > 0) outcome.distances[i] = Saturate(score * per_norm);
    if (probabilistic == nullptr) return;
    probabilistic->ToProbabilities({&score, 1});
    outcome.probabilities[i] = Saturate(score);
  };
  if (mapper.MapsTogether()) {
    // Rows are checked and scored some at a time.
    std::array<ValidationCode, kRowsAtOnce> codes;
    std::array<double, kRowsAtOnce> scores;
    size_t begin = 0;
    size_t end = 0;
    const auto check_scored = [&](size_t i) {
      if (i >= end) {
        begin = i;
        end = std::min(rows, i + kRowsAtOnce);
        KeepGoing(batch.row_begin(end - 1) + batch.row(end - 1).size - batch.row_begin(begin));
        predictor.ScoreRows(
            mapper.Together(begin, end - begin), begin, core.limits.max_example_features, age,
            std::span(codes).first(end - begin), std::span(scores).first(end - begin));
      }
      if (!mapper.IsApart(i)) return codes[i - begin];
      const ValidationCode code = check(i);
      if (code == ValidationCode::kNone)
        predictor.Score(mapper.Map(i), age, {&scores[i - begin], 1});
      return code;
    };
    return PredictRows(mapper, batch, outcome, check_scored,
                       [&](size_t i) { set(i, scores[i - begin]); });
  }
  return PredictRows(mapper, batch, outcome, check, [&](size_t i) {
    const Row row = mapper.Map(i);
    if (!KeepGoing(row.size)) return;
    double score = 0;
    predictor.Score(row, age, {&score, 1});
    set(i, score);
  });
}

}  // namespace perceptrond
