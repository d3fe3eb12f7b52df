#include "core/model/learning_plan.h"

#include <algorithm>
#include <cmath>

#include "core/learner/catalogue.h"

namespace perceptrond {

LearningPlan::LearningPlan(const ModelSettings& settings, Learner& learner)
    : decision{settings.is_multiclass(), settings.learner.tie_rule},
      counts_examples(FindLearner(settings.learner).counts_examples),
      evaluates_runs(learner.batch_evaluation() != nullptr),
      counts_right_rows(settings.stored_examples.sample == 0),
      keeps_rows(learner.State().rows != nullptr),
      bias_squared(settings.learner.bias_input * settings.learner.bias_input) {
  if (learner.support_expansion() != nullptr) kernel.emplace(settings.learner);
}

double LearningPlan::WeightNorm(const Learner& learner) const {
  if (kernel.has_value() || learner.member_votes() != nullptr) return 0;
  // The square, a running sum, may end a rounding error below zero.
  return std::sqrt(std::max(0.0, learner.augmented_squared_norm()));
}

}  // namespace perceptrond
