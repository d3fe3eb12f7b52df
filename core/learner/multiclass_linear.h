// What linear rules of several classes share: a weight vector a class, and updates that move two of
// them along the example, the example's class towards it and its rival away from it.
//
//   score     s_k = w_k . x + w_kb b;  margin m = s_y - s_r, r the rival: the best class but y
//   predict   the class of the greatest score, of equals the lowest
//   mistake   m <= 0, or as the tie rule has it; and any example of a class that is new
//   update    w_y += step (x, b),  w_r -= step (x, b).  A rule says when, and how far
//   new       a class comes up with its first update, from weights of zero; while it is the only
//             one there is no rival, and nothing moves. So the sum of all w_k is always zero.
//   source    the ultraconservative rules of Crammer, Singer: Ultraconservative Online Algorithms
//   for
//             Multiclass Problems, JMLR 3, 2003, section 4
#pragma once

#include <limits>
#include <vector>

#include "core/learner/linear.h"
#include "core/learner/multiclass.h"

namespace perceptrond {

class MulticlassLinear : public Learner, public Multiclass {
 public:
  double Score(const Row& row) const final;
  int32_t Predict(double /*score*/) const final { return 0; }
  Evaluation Evaluate(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const final;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis AnswerHypothesis(uint64_t /*age*/) const final { return {}; }
  const Multiclass* multiclass() const final { return this; }
  void Grow(size_t size) override;
  size_t size() const final { return size_; }
  double squared_norm() const final;
  double augmented_squared_norm() const final;
  LearnerStateView State() const override;
  size_t most_arrays() const override { return max_classes_; }
  bool Restore(LearnerState state) override;

  size_t classes() const final { return weights_.size(); }
  bool HasClass(int32_t label) const final;
  void Answers(const Row& row, uint64_t age, std::span<double> scores) const final;
  Hypothesis ClassHypothesis(size_t number, uint64_t age) const override;
  double ClassWeight(size_t number, uint32_t index, uint64_t /*age*/) const override {
    return weights_[number].weights[index];
  }
  std::span<const float> ClassWeights(size_t number) const final {
    return weights_[number].weights;
  }

 protected:
  MulticlassLinear(const LearnerSettings& settings, size_t size);

  // The rule. margin is infinite while the class has no rival.
  virtual double Loss(double margin) const = 0;
  // Whether it calls for an update. A mistake always must.
  virtual bool Moves(double margin, bool mistake) const = 0;
  // How far an update goes. The judgement has a rival.
  virtual double Step(const Row& row, const Target& target, const Evaluation& evaluation) const = 0;
  // What a class answers with.
  virtual double AnswerOf(size_t number, const Row& row, uint64_t /*age*/) const {
    return ScoreOf(number, row);
  }
  // Makes room for classes below `classes`, with weights of zero.
  virtual void AddClasses(size_t classes);

  // Takes the class up, if it is new.
  void TakeUp(int32_t label);
  // Whether a class's weights stay within float32 when step (row, b) is added.
  bool StaysFinite(int32_t label, double step, const Row& row) const;
  double ScoreOf(size_t number, const Row& row) const {
    return weights_[number].Score(row, offset_value_);
  }
  // The judgement by each class's score, without update and loss.
  template <typename ScoreOfClass>
  Evaluation EvaluateBy(const ScoreOfClass& score_of, int32_t label) const;
  bool IsWrong(double margin, int32_t predicted, int32_t label) const;
  // ||x||^2 + b^2.
  double AugmentedSquaredNorm(const Row& row) const;
  double offset_value() const { return offset_value_; }
  size_t max_classes() const { return max_classes_; }
  const LinearWeights& weights(size_t number) const { return weights_[number]; }
  LinearWeights& weights(size_t number) { return weights_[number]; }

  // What Restore is to take on, once all of a state is read.
  struct Restored {
    size_t size = 0;
    std::vector<LinearWeights> weights;
    std::vector<bool> known;
  };
  // False if what State() appended here is not there.
  bool Read(StateReader& state, Restored& restored) const;
  void Take(Restored restored);

 private:
  const TieRule tie_rule_;
  const double offset_value_;
  const size_t max_classes_;
  size_t size_;
  // By class.
  std::vector<LinearWeights> weights_;
  std::vector<bool> known_;
};

template <typename ScoreOfClass>
Evaluation MulticlassLinear::EvaluateBy(const ScoreOfClass& score_of, int32_t label) const {
  Evaluation evaluation;
  evaluation.predicted = -1;
  // Of a new class: its weights are zero.
  double own = 0;
  double greatest = 0;
  double rival = 0;
  for (size_t k = 0; k < weights_.size(); ++k) {
    if (!known_[k]) continue;
    const double score = score_of(k);
    const auto number = static_cast<int32_t>(k);
    if (evaluation.predicted < 0 || score > greatest) {
      evaluation.predicted = number;
      greatest = score;
    }
    if (number == label) {
      own = score;
    } else if (evaluation.rival < 0 || score > rival) {
      evaluation.rival = number;
      rival = score;
    }
  }
  evaluation.score = evaluation.rival < 0 ? std::numeric_limits<double>::infinity() : own - rival;
  evaluation.mistake = !HasClass(label) || IsWrong(evaluation.score, evaluation.predicted, label);
  return evaluation;
}

}  // namespace perceptrond
