// Softmax regression by stochastic gradient: logistic regression of several classes.
//
//   predict   the k of the greatest s_k = w_k . x + w_kb b;  P(k) = e^(s_k) / sum of e^(s_j)
//   loss      -ln P(y)
//   update    if 1 - P(y) > threshold, for every class that has come up:
//               w_k += eta c ([k = y] - P(k)) (x, b)     (c: the example's weight)
//   new       a new class has a score of 0 among the others, and takes its part in the step
//   bound     for threshold 0 and eta of order 1 / sqrt(T): regret against any W of order
//             ||W|| R sqrt(T) over T examples; no bound on the number of updates
//   source    Bishop: Pattern Recognition and Machine Learning, section 4.3.4; regret: Zinkevich
//   2003
//
// With two classes it is logistic regression with twice the step: P(1) = 1 / (1 + e^-(s_1 - s_0)).
#pragma once

#include "absl/container/inlined_vector.h"
#include "core/learner/multiclass_linear.h"

namespace perceptrond {

class SoftmaxRegression final : public MulticlassLinear {
 public:
  SoftmaxRegression(const LearnerSettings& settings, size_t size)
      : MulticlassLinear(settings, size),
        step_size_(settings.step_size),
        threshold_(settings.update_threshold) {}

  Evaluation Evaluate(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  // O(classes x row.size).
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  bool has_probabilities() const override { return true; }
  void ToProbabilities(std::span<double> scores) const override;

 protected:
  double Loss(double /*margin*/) const override { return 0; }
  bool Moves(double /*margin*/, bool mistake) const override { return mistake; }
  double Step(const Row& /*row*/, const Target& target,
              const Evaluation& /*judgement*/) const override {
    return step_size_ * target.weight;
  }

 private:
  using PerClass = absl::InlinedVector<double, 32>;
  // [k = y] - P(k) by class, 0 for one that has not come up; `label` is among them if it is new.
  PerClass Gradient(const Row& row, int32_t label) const;

  const double step_size_;
  const double threshold_;
};

}  // namespace perceptrond
