#include "core/learner/linear_predictor.h"

namespace perceptrond {

namespace {

// Without a wrapper.
class NewestWeights final : public LinearPredictor, public PredictionWeights {
 public:
  using LinearPredictor::LinearPredictor;

  PredictionWeights* weights() override { return this; }
  double squared_norm(uint64_t /*age*/) const override { return SquaredNorm(learned()); }
  std::vector<ScoreTerm> Terms(uint64_t /*age*/) const override { return TermsOf(learned()); }
  double FeatureWeight(size_t k, uint32_t index, uint64_t /*age*/) const override {
    return learned().scale() * learned()[k].weights[index];
  }
  Hypothesis MakeHypothesis(size_t k, uint64_t /*age*/) const override {
    return perceptrond::MakeHypothesis(learned(), k);
  }
  std::optional<double> PartOfUpdate(uint64_t /*update_age*/, uint64_t /*age*/) const override {
    return 1;
  }
  void WeightsReplaced(uint64_t /*age*/) override {}

  void Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const override {
    learned().Scores(row, scores);
  }
  // Two labels: by the scan that learning uses too.
  void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                 std::span<ValidationCode> codes, std::span<double> scores) const override {
    if (learned().is_multiclass())
      return Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
    learned().ScanRows(batch, first, codes.size(), max_features, {},
                       [&](size_t i, ValidationCode code, const RowScan& /*scan*/, double score) {
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

Hypothesis MakeHypothesis(const ScoreVectors& vectors, size_t k) {
  const LinearWeights& vector = vectors[k];
  Hypothesis hypothesis{vector.weights, vector.bias_weight * vectors.bias_input()};
  if (vectors.scale() == 1) return hypothesis;
  for (float& weight : hypothesis.weights) weight = static_cast<float>(weight * vectors.scale());
  hypothesis.bias *= vectors.scale();
  return hypothesis;
}

ScoreTerm TermOf(const LinearWeights& vector, double bias_input, double coefficient, size_t score) {
  ScoreTerm term;
  term.vector = {nullptr, vector.weights.data(), vector.weights.size()};
  term.bias = vector.bias_weight * bias_input;
  term.coefficient = coefficient;
  term.score = static_cast<uint32_t>(score);
  return term;
}

std::vector<ScoreTerm> TermsOf(const ScoreVectors& vectors) {
  std::vector<ScoreTerm> terms;
  for (size_t k = 0; k < vectors.count(); ++k) {
    if (vectors.is_multiclass() && !vectors.Has(static_cast<int32_t>(k))) continue;
    terms.push_back(TermOf(vectors[k], vectors.bias_input(), vectors.scale(), k));
  }
  return terms;
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
