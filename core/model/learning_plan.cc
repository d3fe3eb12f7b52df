#include "core/model/learning_plan.h"

#include <algorithm>
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/ledger/ledger.h"
#include "core/model/row_learning.h"

namespace perceptrond {
namespace {

std::optional<uint64_t> NoAge(Ledger& /*ledger*/) { return std::nullopt; }
std::optional<uint64_t> ExamplesEvaluated(Ledger& ledger) { return ledger.examples(); }

uint64_t NoBatchAge(Ledger& /*ledger*/) { return 0; }
uint64_t BatchAge(Ledger& ledger) { return ledger.examples(); }

bool NeverFull(Learner& /*learner*/, uint64_t /*age*/) { return false; }
bool BatchIsFull(Learner& learner, uint64_t age) { return learner.batch_learning()->IsFull(age); }

bool NeverPending(Learner& /*learner*/) { return false; }
bool BatchIsPending(Learner& learner) { return learner.batch_learning()->IsPending(); }

int32_t LabelSign(int32_t label) { return label; }
int32_t ScoreIsMargin(int32_t /*label*/) { return 1; }

double WeightNorm(const Learner& learner) {
  // The square, a running sum, may end a rounding error below zero.
  return std::sqrt(std::max(0.0, learner.augmented_squared_norm()));
}
double NoWeightNorm(const Learner& /*learner*/) { return 0; }

bool IsKernel(const LearnerSettings& settings) {
  return FindLearner(settings).form == Form::kKernel;
}

}  // namespace

ExampleNorm::ExampleNorm(const LearnerSettings& settings)
    : bias_squared_(settings.bias_input * settings.bias_input), kernel_(settings) {
  if (IsKernel(settings)) {
    squared_ = [](const ExampleNorm& norm, double squared_norm) {
      return norm.kernel_.OfItself(squared_norm);
    };
  } else {
    squared_ = [](const ExampleNorm& norm, double squared_norm) {
      return squared_norm + norm.bias_squared_;
    };
  }
}

LearningPlan::LearningPlan(const ModelSettings& settings)
    : age(&NoAge),
      batch_age(&NoBatchAge),
      batch_is_full(&NeverFull),
      batch_is_pending(&NeverPending),
      margin_sign(&LabelSign),
      weight_norm(IsKernel(settings.learner) ? &NoWeightNorm : &WeightNorm),
      make_evaluator(&MakeRunEvaluator),
      norm(settings.learner) {
  const CatalogueEntry& rule = FindLearner(settings.learner);
  const bool learns_batches = rule.learns_batches;
  if (rule.counts_examples) age = &ExamplesEvaluated;
  if (learns_batches) {
    batch_age = &BatchAge;
    batch_is_full = &BatchIsFull;
    batch_is_pending = &BatchIsPending;
  }
  if (settings.is_multiclass()) {
    margin_sign = &ScoreIsMargin;
    make_evaluator = &MakeRowEvaluator;
    no_prediction = -1;
  }
  counts_right_rows =
      !learns_batches && !IsKernel(settings.learner) && settings.stored_examples.sample == 0;
}

}  // namespace perceptrond
