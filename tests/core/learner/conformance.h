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
#include "core/learner/score_vectors.h"
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

// The steps that a learner may have.
inline std::vector<StepSchedule> StepsOf(const CatalogueEntry& entry) {
  std::vector<StepSchedule> steps = {StepSchedule::kConstant};
  if (entry.rule != RuleKind::kLogisticRegression) return steps;
  steps.push_back(StepSchedule::kDecreasing);
  if (entry.wrapper == WrapperKind::kNone) steps.push_back(StepSchedule::kAdaptive);
  return steps;
}

// A learner of the catalogue in one of its settings.
struct Conformer {
  const CatalogueEntry* entry;
  // Two labels.
  bool binary;
  // Classes from the start; of the others each appears with its first example.
  uint32_t initial;
  TieRule tie;
  double bias;
  double step;
  StepSchedule steps;
};

inline void PrintTo(const Conformer& one, std::ostream* out) {
  *out << one.entry->name << (one.binary ? " of two labels" : " of classes");
}

inline std::string ConformerName(const ::testing::TestParamInfo<Conformer>& info) {
  constexpr const char* kSteps[] = {"", "_decreasing", "_adaptive"};
  const Conformer& one = info.param;
  return SafeName(absl::StrCat(one.entry->name,
                               one.binary ? "" : absl::StrCat("_from", one.initial), "_tie",
                               static_cast<int>(one.tie), "_bias", one.bias * 100, "_step",
                               one.step * 100, kSteps[static_cast<int>(one.steps)]));
}

constexpr uint32_t kConformanceClasses = 5;

// Every learner, or those that a test is about, in every setting, with two labels and, where it has
// them, with several classes.
inline std::vector<Conformer> Conformers(bool (*chosen)(const Conformer&)) {
  std::vector<Conformer> all;
  for (const CatalogueEntry& entry : Catalogue()) {
    for (const StepSchedule steps : StepsOf(entry)) {
      for (const TieRule tie : {TieRule::kMistake, TieRule::kPositive, TieRule::kCorrect}) {
        for (const double bias : {0.0, 1.0, 0.25, 7.5}) {
          // The last needs weights to start from.
          const bool needs_start = tie == TieRule::kCorrect;
          for (const double step : {1.0, 0.375, 3.0}) {
            if (step != 1 && !HasSetting(entry.name, "step_size")) continue;
            if (!needs_start || entry.form != Form::kKernel)
              all.push_back({&entry, true, 0, tie, bias, step, steps});
          }
          if (needs_start || !entry.has_classes()) continue;
          for (const uint32_t initial : {0U, kConformanceClasses})
            all.push_back({&entry, false, initial, tie, bias, 1, steps});
        }
      }
    }
  }
  std::erase_if(all, [chosen](const Conformer& one) { return !chosen(one); });
  return all;
}

class LearnerConformance : public ::testing::TestWithParam<Conformer> {
 protected:
  static constexpr uint32_t kDimension = 13;
  static constexpr auto kClasses = static_cast<int32_t>(kConformanceClasses);

  static LearnerSettings Settings() {
    const Conformer& one = GetParam();
    LearnerSettings settings = TightSettings(*one.entry);
    settings.steps = one.steps;
    settings.tie_rule = one.tie;
    settings.bias_input = one.bias;
    settings.step_size = one.step;
    if (one.tie == TieRule::kCorrect) settings.start.vectors = {{{1, 4}, {0.25F, -1.5F}}};
    if (!one.binary) settings.classes = {kConformanceClasses, one.initial, {}};
    return settings;
  }
  static std::unique_ptr<Learner> Make(size_t size = kDimension) {
    return MakeLearner(Settings(), size);
  }
  static bool binary() { return GetParam().binary; }
  static std::vector<int32_t> Labels() {
    if (binary()) return {-1, 1};
    return {0, 1, 2, 3, 4};
  }
  // Scores of a learner that has seen every class.
  static size_t scores() { return binary() ? 1 : kConformanceClasses; }

  // A label at random, for example n of `count`: plenty of mistakes. Of classes the later ones come
  // only after a while, the highest number first, so that there are gaps.
  static int32_t Label(std::mt19937& random, size_t n, size_t count) {
    if (binary()) return random() % 2 == 0 ? 1 : -1;
    const auto most = static_cast<uint32_t>(1 + n * kConformanceClasses / count);
    return kClasses - 1 - static_cast<int32_t>(random() % most);
  }
  static std::vector<SvmExample> Noise(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<SvmExample> examples(count);
    for (size_t n = 0; n < count; ++n) {
      examples[n].label = Label(random, n, count);
      for (uint32_t i = 0; i < kDimension; ++i) {
        examples[n].indices.push_back(i);
        examples[n].values.push_back(normal(random));
      }
    }
    return examples;
  }
  // Small whole numbers, zeros among them: with such steps and offsets every sum is exact, in whatever
  // order, and scores tie.
  static std::vector<SvmExample> WholeNumbers(uint32_t seed, size_t count) {
    std::mt19937 random(seed);
    std::vector<SvmExample> examples = Noise(seed, count);
    for (SvmExample& example : examples) {
      for (float& value : example.values)
        value = static_cast<float>(static_cast<int>(random() % 5) - 2);
    }
    return examples;
  }
  // By what it learns with, without predicting; empty: only its evaluations show it.
  static std::vector<double> LearnedScores(const Learner& learner, const Row& row) {
    if (binary()) return {learner.Evaluate(row, 1).score};
    const ScoreVectors* const vectors = VectorsOf(learner);
    if (vectors == nullptr) return {};
    std::vector<double> scores(vectors->count());
    vectors->Scores(row, scores);
    return scores;
  }
};

inline std::vector<uint64_t> BitsOf(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double value : values) bits.push_back(BitsOf(value));
  return bits;
}

}  // namespace perceptrond::testing
