#include "core/model/class_predictions.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/learner/decision.h"
#include "core/model/error.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

}  // namespace

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

}  // namespace perceptrond
