#include "core/learner/logistic_regression.h"

#include <cmath>

#include "core/vector/exp.h"

namespace perceptrond {

std::optional<double> LogisticRegression::Probability(double score) const {
  return DeterministicSigmoid(score);
}

double LogisticRegression::Loss(double signed_score) const {
  return signed_score < 0 ? std::log1p(std::exp(signed_score)) - signed_score
                          : std::log1p(std::exp(-signed_score));
}

bool LogisticRegression::Moves(double signed_score, bool mistake) const {
  return mistake || DeterministicSigmoid(-signed_score) > threshold_;
}

double LogisticRegression::Step(const Row& /*row*/, double signed_score, double weight) const {
  return step_size_ * weight * DeterministicSigmoid(-signed_score);
}

}  // namespace perceptrond
