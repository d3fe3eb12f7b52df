// The learners under test, and what a conformance test does with one.
#pragma once

#include <bit>
#include <cctype>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/learner/rule_learner.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"
#include "tests/support/learners.h"

namespace perceptrond::testing {

inline uint64_t BitsOf(double value) { return std::bit_cast<uint64_t>(value); }

// The vectors that a linear learner learns with; null: it is not linear.
inline const ScoreVectors* VectorsOf(const Learner& learner) {
  const auto* const linear = dynamic_cast<const LinearLearner*>(&learner);
  return linear == nullptr ? nullptr : &linear->vectors();
}

// Every bit of a learner's state.
inline std::vector<uint64_t> Bits(const Learner& learner) {
  std::vector<uint64_t> bits;
  const LearnerStateView state = learner.State();
  for (const std::span<const float> array : state.arrays) {
    for (const float value : array) bits.push_back(std::bit_cast<uint32_t>(value));
  }
  for (const double scalar : state.scalars) bits.push_back(BitsOf(scalar));
  for (size_t i = 0; state.rows != nullptr && i < state.rows->size(); ++i) {
    const Row row = state.rows->row(i);
    bits.push_back(BitsOf(state.rows->coefficient(i)));
    for (size_t j = 0; j < row.size; ++j) {
      bits.push_back(row.index(j));
      bits.push_back(std::bit_cast<uint32_t>(row.value(j)));
    }
  }
  return bits;
}

// As a snapshot would keep it.
inline LearnerState CopyOfState(const Learner& learner) {
  const LearnerStateView view = learner.State();
  LearnerState state;
  for (const std::span<const float> array : view.arrays)
    state.arrays.emplace_back(array.begin(), array.end());
  state.scalars = view.scalars;
  if (view.rows != nullptr) state.rows = *view.rows;
  return state;
}

// The scores that a learner predicts by.
inline std::vector<double> PredictedScores(const Learner& learner, const Row& row, uint64_t age) {
  std::vector<double> scores(learner.predictor().scores());
  learner.predictor().Score(row, age, scores);
  return scores;
}

// Every bit of what it predicts by; of learners without feature weights the norm alone.
inline std::vector<uint64_t> PredictionBits(const Learner& learner, uint64_t age) {
  std::vector<uint64_t> bits = {BitsOf(learner.predictor().squared_norm(age))};
  const FeatureWeights* const weights = learner.feature_weights();
  for (size_t k = 0; weights != nullptr && k < learner.predictor().scores(); ++k) {
    const Hypothesis hypothesis = weights->MakeHypothesis(k, age);
    bits.push_back(BitsOf(hypothesis.bias));
    for (const float weight : hypothesis.weights) bits.push_back(std::bit_cast<uint32_t>(weight));
  }
  return bits;
}

// With two labels: the score that a learner learns by, and the one that it predicts by.
inline double ScoreOf(const Learner& learner, const Row& row) {
  return learner.Evaluate(row, 1).score;
}
inline double PredictedScore(const Learner& learner, const Row& row, uint64_t age) {
  return PredictedScores(learner, row, age)[0];
}

// As core/model does between examples.
inline void EndFullBatch(Learner& learner, uint64_t age) {
  BatchLearning* const batch = learner.batch_learning();
  if (batch != nullptr && batch->ExamplesUntilFull(age) == 0) batch->EndBatch();
}

// As core/model uses a learner. Says whether it was updated.
inline bool Learn(Learner& learner, const Row& row, const Target& target) {
  EndFullBatch(learner, target.age);
  const Evaluation evaluation = learner.Evaluate(row, target.label);
  EXPECT_TRUE(evaluation.update || !evaluation.mistake);
  if (!evaluation.update || !learner.CanUpdate(row, target, evaluation)) return false;
  learner.Update(row, target, evaluation);
  return true;
}
// The rows after `age` others. The number of updates.
inline size_t LearnAll(Learner& learner, const Batch& batch, uint64_t age = 0) {
  size_t updates = 0;
  for (size_t i = 0; i < batch.rows(); ++i)
    updates += Learn(learner, batch.row(i), {batch.labels[i], 1, age + i}) ? 1 : 0;
  EndFullBatch(learner, age + batch.rows());
  return updates;
}

// Settings so tight that batches end and rows are removed within a few examples.
inline LearnerSettings TightSettings(const CatalogueEntry& entry) {
  LearnerSettings settings;
  settings.rule = entry.rule;
  settings.wrapper = entry.wrapper;
  settings.mini_batch = 7;
  settings.budget = 20;
  settings.ratchet_examples = 10;
  settings.kernel.gamma = 0.05;
  return settings;
}

inline std::string SafeName(const std::string& name) {
  std::string safe;
  for (const char c : name) safe += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return safe;
}

// A learner of two labels, its tie rule, bias input, step size and steps.
using BinarySetting = std::tuple<const CatalogueEntry*, TieRule, double, double, StepSchedule>;

// The steps that a learner may have.
inline std::vector<StepSchedule> StepsOf(const CatalogueEntry& entry) {
  std::vector<StepSchedule> steps = {StepSchedule::kConstant};
  if (entry.rule != RuleKind::kLogisticRegression) return steps;
  steps.push_back(StepSchedule::kDecreasing);
  if (entry.wrapper == WrapperKind::kNone) steps.push_back(StepSchedule::kAdaptive);
  return steps;
}

inline std::string BinarySettingName(const ::testing::TestParamInfo<BinarySetting>& info) {
  constexpr const char* kSteps[] = {"", "_decreasing", "_adaptive"};
  const auto& [entry, tie, bias, step, steps] = info.param;
  return SafeName(absl::StrCat(entry->name, "_tie", static_cast<int>(tie), "_bias", bias * 100,
                               "_step", step * 100, kSteps[static_cast<int>(steps)]));
}

// Every learner, or those that a test is about, in every setting.
inline std::vector<BinarySetting> BinarySettings(bool (*chosen)(const CatalogueEntry&)) {
  std::vector<BinarySetting> settings;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!chosen(entry)) continue;
    for (const TieRule tie : {TieRule::kMistake, TieRule::kPositive, TieRule::kCorrect}) {
      // Needs weights to start from.
      if (tie == TieRule::kCorrect && entry.form == Form::kKernel) continue;
      for (const double bias : {0.0, 1.0, 0.25, 7.5}) {
        for (const StepSchedule steps : StepsOf(entry)) {
          settings.emplace_back(&entry, tie, bias, 1.0, steps);
          if (!testing::HasSetting(entry.name, "step_size")) continue;
          settings.emplace_back(&entry, tie, bias, 0.375, steps);
          settings.emplace_back(&entry, tie, bias, 3.0, steps);
        }
      }
    }
  }
  return settings;
}

class LearnerConformance : public ::testing::TestWithParam<BinarySetting> {
 protected:
  static constexpr uint32_t kDimension = 13;

  static std::unique_ptr<Learner> Make(size_t size = kDimension) {
    const auto& [entry, tie, bias, step, steps] = GetParam();
    LearnerSettings settings = TightSettings(*entry);
    settings.steps = steps;
    settings.tie_rule = tie;
    settings.bias_input = bias;
    settings.step_size = step;
    if (tie == TieRule::kCorrect) {
      settings.start.vectors = {{{1, 4}, {0.25F, -1.5F}}};
    }
    return MakeLearner(settings, size);
  }

  // Labels at random: plenty of mistakes.
  static std::vector<SvmExample> Noise(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<SvmExample> examples(count);
    for (SvmExample& example : examples) {
      example.label = random() % 2 == 0 ? 1 : -1;
      for (uint32_t i = 0; i < kDimension; ++i) {
        example.indices.push_back(i);
        example.values.push_back(normal(random));
      }
    }
    return examples;
  }
};

}  // namespace perceptrond::testing
