#include "core/learner/linear_predictor.h"

namespace perceptrond {

void LinearPredictor::Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const {
  learned_.Scores(row, scores);
}

void LinearPredictor::ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                                std::span<ValidationCode> codes, std::span<double> scores) const {
  if (learned_.is_multiclass())
    return Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
  learned_.ScanRows(batch, first, codes.size(), max_features,
                    [&](size_t i, ValidationCode code, double /*squared_norm*/, double score) {
                      codes[i] = code;
                      scores[i] = score;
                    });
}

double LinearPredictor::squared_norm(uint64_t /*age*/) const { return SquaredNorm(learned_); }

Hypothesis LinearPredictor::MakeHypothesis(size_t k, uint64_t /*age*/) const {
  const LinearWeights& vector = learned_[k];
  Hypothesis hypothesis{vector.weights, vector.bias_weight * learned_.bias_input()};
  if (learned_.scale() == 1) return hypothesis;
  for (float& weight : hypothesis.weights) weight = static_cast<float>(weight * learned_.scale());
  hypothesis.bias *= learned_.scale();
  return hypothesis;
}

double LinearPredictor::FeatureWeight(size_t k, uint32_t index, uint64_t /*age*/) const {
  return learned_.scale() * learned_[k].weights[index];
}

std::unique_ptr<LinearPredictor> LinearPredictor::Read(StateReader& /*state*/,
                                                       const ScoreVectors& /*read*/) const {
  return std::make_unique<LinearPredictor>(learned_);
}

std::unique_ptr<LinearPredictor> MakeLinearPredictor(const LearnerSettings& settings,
                                                     const ScoreVectors& learned) {
  switch (settings.wrapper) {
    case WrapperKind::kNone:
      break;
    case WrapperKind::kAveraged:
      return MakeAveraged(settings, learned);
    case WrapperKind::kPocket:
      return MakePocket(settings, learned);
    case WrapperKind::kVoted:
      return MakeVoted(settings, learned);
  }
  return std::make_unique<LinearPredictor>(learned);
}

}  // namespace perceptrond
