// A learner made of a linear rule and, if there is one, a wrapper: what every such learner does
// once, for two labels and for several classes.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/learner/learner.h"
#include "core/learner/linear_predictor.h"
#include "core/learner/linear_rule.h"
#include "core/learner/score_vectors.h"
#include "core/vector/kernels.h"

namespace perceptrond {

// What does not depend on the rule.
class LinearLearner : public Learner, public LearnedWeights, public ReplaceableWeights {
 public:
  size_t size() const final { return vectors_.size(); }
  double augmented_squared_norm() const final { return AugmentedSquaredNorm(vectors_); }
  const Predictor& predictor() const final { return *predictor_; }
  const LearnedWeights* learned_weights() const final { return this; }
  const FeatureWeights* feature_weights() const final { return predictor_->weights(); }
  ReplaceableWeights* replaceable_weights() override {
    return predictor_->weights() == nullptr ? nullptr : this;
  }

  bool AreZero() const final;
  bool AreZero(uint32_t index) const final;

  // The weights that it learns with.
  const ScoreVectors& vectors() const { return vectors_; }

 protected:
  LinearLearner(const LearnerSettings& settings, size_t size)
      : vectors_(settings, size), predictor_(MakeLinearPredictor(settings, vectors_)) {}

  ScoreVectors& vectors() { return vectors_; }
  LinearPredictor& wrapper() const { return *predictor_; }
  void Take(ScoreVectors vectors, std::unique_ptr<LinearPredictor> predictor);

 private:
  ScoreVectors vectors_;
  std::unique_ptr<LinearPredictor> predictor_;
};

inline bool LinearLearner::AreZero() const {
  for (size_t k = 0; k < vectors_.count(); ++k) {
    if (vectors_[k].bias_weight != 0 || !AllZero(vectors_[k].weights)) return false;
  }
  return true;
}

inline bool LinearLearner::AreZero(uint32_t index) const {
  for (size_t k = 0; k < vectors_.count(); ++k) {
    if (vectors_[k].weights[index] != 0) return false;
  }
  return true;
}

inline void LinearLearner::Take(ScoreVectors vectors, std::unique_ptr<LinearPredictor> predictor) {
  vectors_ = std::move(vectors);
  predictor_ = std::move(predictor);
  predictor_->Restored();
}

template <class Rule>
class RuleLearner : public LinearLearner, public BatchEvaluation, public DualForm {
 public:
  RuleLearner(const LearnerSettings& settings, size_t size)
      : LinearLearner(settings, size), rule_(settings) {
    rule_.memory.Resize(vectors().count(), size);
  }

  Evaluation Evaluate(const Row& row, int32_t label) const final;
  void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                    std::span<EvaluatedRow> evaluated) const final;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const final;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) final;
  void Grow(size_t size) final;
  LearnerStateView State() const final;
  size_t max_arrays() const final {
    return vectors().max_count() * (1 + Rule::kArraysPerVector + wrapper().arrays_per_vector());
  }
  bool Restore(LearnerState state) final;

  const BatchEvaluation* batch_evaluation() const final {
    return vectors().is_multiclass() ? nullptr : this;
  }
  const DualForm* dual_form() const final { return HasDualForm() ? this : nullptr; }

  std::optional<double> DualCoefficient(size_t k, const PastUpdate& update,
                                        uint64_t age) const final;
  void ReplaceWeights(std::span<const ReplacementVector> given, uint64_t age) final;

 protected:
  const Rule& rule() const { return rule_; }
  Rule& rule() { return rule_; }

 private:
  // The coefficients of a move of all classes are not stored.
  bool HasDualForm() const {
    return Rule::kHasDual && !(Rule::kMovesAllClasses && vectors().is_multiclass()) &&
           wrapper().weights() != nullptr;
  }
  // An example with what the rule reads of it. A rival below 0: with two labels.
  template <Needs kNeeds>
  SignedExample Sign(const Row& row, double margin, bool mistake, int32_t label,
                     int32_t rival) const;
  // Two labels: completes an evaluation whose score is there.
  void EvaluateScore(const SignedExample& z, Evaluation& evaluation) const;
  Evaluation EvaluateClasses(const Row& row, int32_t label) const;
  Moves MakeMoves(const Row& row, const Target& target, const Evaluation& evaluation) const;
  Moves MoveAllClasses(const Row& row, const Target& target) const;

  Rule rule_;
};

template <class Rule>
template <Needs kNeeds>
SignedExample RuleLearner<Rule>::Sign(const Row& row, double margin, bool mistake, int32_t label,
                                      int32_t rival) const {
  SignedExample z{margin, mistake};
  if constexpr (kNeeds == Needs::kSquaredNorm)
    z.squared_norm = (rival < 0 ? 1 : 2) * vectors().AugmentedSquaredNorm(row);
  if constexpr (kNeeds == Needs::kVariance) {
    z.variance = rule_.Variance(vectors(), rival < 0 ? 0 : static_cast<size_t>(label), row);
    if (rival >= 0) z.variance += rule_.Variance(vectors(), static_cast<size_t>(rival), row);
  }
  return z;
}

template <class Rule>
void RuleLearner<Rule>::EvaluateScore(const SignedExample& z, Evaluation& evaluation) const {
  evaluation.predicted = PredictLabel(evaluation.score, vectors().decision().tie_rule);
  evaluation.rival = -1;
  evaluation.mistake = z.mistake;
  evaluation.update = rule_.CallsForUpdate(z);
  evaluation.loss = rule_.Loss(z);
}

template <class Rule>
Evaluation RuleLearner<Rule>::Evaluate(const Row& row, int32_t label) const {
  if (vectors().is_multiclass()) return EvaluateClasses(row, label);
  Evaluation evaluation;
  evaluation.score = vectors().Score(0, row);
  const bool mistake = IsMistake(evaluation.score, label, vectors().decision().tie_rule);
  EvaluateScore(Sign<Rule::kEvaluationNeeds>(row, label * evaluation.score, mistake, label, -1),
                evaluation);
  return evaluation;
}

template <class Rule>
Evaluation RuleLearner<Rule>::EvaluateClasses(const Row& row, int32_t label) const {
  ClassScores room(vectors().count());
  const std::span<double> scores(room.data(), room.size());
  vectors().Scores(row, scores);
  Evaluation evaluation = vectors().decision().Evaluate(scores, label);
  if constexpr (Rule::kMovesAllClasses) {
    rule_.EvaluateClasses(scores, label, evaluation);
  } else {
    SignedExample z{evaluation.score, evaluation.mistake};
    if (evaluation.rival >= 0)
      z = Sign<Rule::kEvaluationNeeds>(row, z.margin, z.mistake, label, evaluation.rival);
    evaluation.update = rule_.CallsForUpdate(z);
    evaluation.loss = rule_.Loss(z);
  }
  // The update that makes the class exist.
  evaluation.update |= !vectors().Has(label);
  return evaluation;
}

template <class Rule>
void RuleLearner<Rule>::EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                                     std::span<EvaluatedRow> evaluated) const {
  const TieRule tie_rule = vectors().decision().tie_rule;
  const double squared_bias = vectors().bias_input() * vectors().bias_input();
  constexpr bool kNeedsVariance = Rule::kEvaluationNeeds == Needs::kVariance;
  vectors().ScanRows(batch, first, evaluated.size(), max_features,
                     kNeedsVariance ? rule_.FeatureVariances() : std::span<const float>(),
                     [&](size_t i, ValidationCode code, const RowScan& scan, double score) {
                       const int32_t label = batch.labels[first + i];
                       evaluated[i].code = code;
                       evaluated[i].squared_norm = scan.squared_norm;
                       evaluated[i].evaluation.score = score;
                       SignedExample z{label * score, IsMistake(score, label, tie_rule)};
                       if constexpr (Rule::kEvaluationNeeds == Needs::kSquaredNorm)
                         z.squared_norm = scan.squared_norm + squared_bias;
                       if constexpr (kNeedsVariance)
                         z.variance = rule_.Variance(vectors(), scan.weighted_squared_norm);
                       EvaluateScore(z, evaluated[i].evaluation);
                     });
}

template <class Rule>
Moves RuleLearner<Rule>::MakeMoves(const Row& row, const Target& target,
                                   const Evaluation& evaluation) const {
  if (!vectors().is_multiclass()) {
    const double margin = target.label * evaluation.score;
    const Step step = rule_.MakeStep(
        Sign<Rule::kStepNeeds>(row, margin, evaluation.mistake, target.label, -1), target.weight);
    return {{0, target.label * (step.length / vectors().scale()), step.shrink}};
  }
  if constexpr (Rule::kMovesAllClasses) return MoveAllClasses(row, target);
  if (evaluation.rival < 0) return {};
  const Step step = rule_.MakeStep(Sign<Rule::kStepNeeds>(row, evaluation.score, evaluation.mistake,
                                                          target.label, evaluation.rival),
                                   target.weight);
  const double length = step.length / vectors().scale();
  return {{static_cast<size_t>(target.label), length, step.shrink},
          {static_cast<size_t>(evaluation.rival), -length, step.shrink}};
}

template <class Rule>
Moves RuleLearner<Rule>::MoveAllClasses(const Row& row, const Target& target) const {
  Moves moves;
  if constexpr (Rule::kMovesAllClasses) {
    ClassScores room(vectors().count());
    const std::span<double> scores(room.data(), room.size());
    vectors().Scores(row, scores);
    const ClassScores coefficients = rule_.Coefficients(scores, target.label);
    const double step = rule_.StepSize(target.weight);
    for (size_t k = 0; k < coefficients.size(); ++k) {
      if (coefficients[k] != 0) moves.push_back({k, step * coefficients[k]});
    }
  }
  return moves;
}

template <class Rule>
bool RuleLearner<Rule>::CanUpdate(const Row& row, const Target& target,
                                  const Evaluation& evaluation) const {
  const Moves moves = MakeMoves(row, target, evaluation);
  for (const Move& move : moves) {
    if (!rule_.CanMove(vectors(), move, row)) return false;
  }
  return wrapper().CanUpdate({row, target, moves});
}

template <class Rule>
void RuleLearner<Rule>::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const Moves moves = MakeMoves(row, target, evaluation);
  if (!vectors().Has(target.label)) {
    vectors().AddClass(target.label);
    rule_.memory.Resize(vectors().count(), size());
    wrapper().Resize();
  }
  const LinearUpdate update{row, target, moves};
  wrapper().BeforeUpdate(update);
  for (const Move& move : moves) rule_.MakeMove(vectors(), move, row);
  if (!moves.empty()) rule_.FinishUpdate(vectors(), target);
  wrapper().AfterUpdate(update);
}

template <class Rule>
void RuleLearner<Rule>::Grow(size_t size) {
  vectors().Grow(size);
  rule_.memory.Resize(vectors().count(), this->size());
  wrapper().Resize();
}

template <class Rule>
LearnerStateView RuleLearner<Rule>::State() const {
  LearnerStateView state;
  Append(vectors(), state);
  rule_.memory.AppendTo(vectors(), state);
  wrapper().AppendTo(state);
  return state;
}

template <class Rule>
bool RuleLearner<Rule>::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  std::optional<ScoreVectors> read = ReadScoreVectors(reader, vectors());
  typename Rule::Memory memory;
  if (!read.has_value() || !memory.Read(reader, *read)) return false;
  std::unique_ptr<LinearPredictor> predictor = wrapper().Read(reader, *read);
  if (predictor == nullptr || !reader.Done()) return false;
  rule_.memory = std::move(memory);
  Take(*std::move(read), std::move(predictor));
  return true;
}

template <class Rule>
std::optional<double> RuleLearner<Rule>::DualCoefficient(size_t k, const PastUpdate& update,
                                                         uint64_t age) const {
  const std::optional<double> part = wrapper().weights()->PartOfUpdate(update.target.age, age);
  if (!part.has_value()) return std::nullopt;
  Evaluation evaluation;
  evaluation.score = update.score;
  evaluation.rival = update.rival;
  for (const Move& move : MakeMoves(update.row, update.target, evaluation)) {
    if (move.vector == k) return *part * rule_.DualCoefficient(move.length, update.target.age);
  }
  return 0;
}

template <class Rule>
void RuleLearner<Rule>::ReplaceWeights(std::span<const ReplacementVector> given, uint64_t age) {
  const ReplacementVector zero{{kNoIndices, nullptr, 0}, 0};
  for (size_t k = 0; k < vectors().count(); ++k) {
    const ReplacementVector& one = k < given.size() ? given[k] : zero;
    vectors().Replace(k, one.weights, one.bias_weight);
  }
  rule_.WeightsReplaced(vectors());
  wrapper().weights()->WeightsReplaced(age);
}

}  // namespace perceptrond
