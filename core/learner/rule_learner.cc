#include "core/learner/rule_learner.h"

namespace perceptrond {

std::optional<double> LinearLearner::FeatureWeight(size_t k, uint32_t index, uint64_t age) const {
  if (!has_feature_weights_) return std::nullopt;
  return predictor_->FeatureWeight(k, index, age);
}

void LinearLearner::Take(ScoreVectors vectors, std::unique_ptr<LinearPredictor> predictor) {
  vectors_ = std::move(vectors);
  predictor_ = std::move(predictor);
  predictor_->Restored();
}

}  // namespace perceptrond
