// What linear rules share: one weight a feature, one for the offset's coordinate, and updates along
// the example, w += step y (x, b). A rule says when, and how far.
#pragma once

#include <vector>

#include "core/learner/learner.h"
#include "core/learner/settings.h"
#include "core/vector/compensated_sum.h"

namespace perceptrond {

class StateReader;

// Weights with the offset's coordinate and the norm kept up to date. A plain value; not
// thread-safe.
struct LinearWeights {
  FloatArray weights;
  // Of the offset's coordinate. Kept in float64, but always a float32 value, so that the offset and
  // a column of b's learn the same bits.
  double offset_weight = 0;
  // ||weights||^2.
  CompensatedSum squared_norm;

  double Score(const Row& row, double offset_value) const;
  // Whether everything stays within float32 when step (row, b) is added.
  bool StaysFinite(double step, const Row& row, double offset_value) const;
  // += step (row, b).
  void Add(double step, const Row& row, double offset_value);

  void AppendTo(LearnerStateView& state) const;
  // What AppendTo appended.
  static LinearWeights From(StateReader& state);
};

// The label of a score, and whether it is a mistake for a label.
inline int32_t PredictByTieRule(double score, TieRule rule) {
  if (score == 0) return rule == TieRule::kPositive ? 1 : -1;
  return score > 0 ? 1 : -1;
}
inline bool IsMistake(double score, int32_t label, TieRule rule) {
  switch (rule) {
    case TieRule::kMistake:
      return label * score <= 0;
    case TieRule::kPositive:
      return PredictByTieRule(score, rule) != label;
    case TieRule::kCorrect:
      return label * score < 0;
  }
  return false;
}

class LinearLearner : public Learner {
 public:
  double Score(const Row& row) const override;
  int32_t Predict(double score) const override;
  Evaluation Evaluate(const Row& row, int32_t label) const override;
  void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                    std::span<EvaluatedRow> evaluated) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis AnswerHypothesis(uint64_t age) const override;
  std::optional<double> AnswerWeight(uint32_t index, uint64_t age) const override;
  // The step: nothing later scales it.
  std::optional<double> AnswerShare(const PastUpdate& update, uint64_t age) const override;
  bool CanReplaceWeights() const override { return true; }
  void ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) override;
  void Grow(size_t size) override;
  size_t size() const override { return linear_.weights.size(); }
  double squared_norm() const override { return linear_.squared_norm.value(); }
  double augmented_squared_norm() const override {
    return linear_.squared_norm.value() + linear_.offset_weight * linear_.offset_weight;
  }
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 protected:
  // `size` weights, zero but for settings.start, whose indices must be below size.
  LinearLearner(const LearnerSettings& settings, size_t size);

  // How far along y (x, b) an update goes. signed_score is y s.
  virtual double Step(const Row& row, double signed_score, double weight) const = 0;

  // ||x||^2 + b^2.
  double AugmentedSquaredNorm(const Row& row) const;
  double offset_value() const { return offset_value_; }
  TieRule tie_rule() const { return tie_rule_; }
  const LinearWeights& linear() const { return linear_; }
  LinearWeights& linear() { return linear_; }

 private:
  // The rule, of many scores at once: all of a judgement but its score, which is there.
  virtual void EvaluateScores(std::span<const int32_t> labels,
                              std::span<EvaluatedRow> evaluated) const = 0;

  const TieRule tie_rule_;
  const double offset_value_;
  LinearWeights linear_;
};

}  // namespace perceptrond
