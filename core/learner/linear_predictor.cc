#include "core/learner/linear_predictor.h"

namespace perceptrond {

namespace {

// Without a wrapper.
class NewestWeights final : public LinearPredictor {
 public:
  using LinearPredictor::LinearPredictor;

  void Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const override {
    learned().Scores(row, scores);
  }
  // Two labels: by the scan that learning uses too.
  void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                 std::span<ValidationCode> codes, std::span<double> scores) const override {
    if (learned().is_multiclass())
      return Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
    learned().ScanRows(batch, first, codes.size(), max_features,
                       [&](size_t i, ValidationCode code, double /*squared_norm*/, double score) {
                         codes[i] = code;
                         scores[i] = score;
                       });
  }
  std::unique_ptr<LinearPredictor> Read(StateReader& /*state*/,
                                        const ScoreVectors& /*read*/) const override {
    return std::make_unique<NewestWeights>(learned());
  }
};

}  // namespace

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
  return std::make_unique<NewestWeights>(learned);
}

}  // namespace perceptrond
