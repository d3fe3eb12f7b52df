// The perceptron in a kernel's space, on a budget of B examples: the self-tuned Forgetron.
//
//   predict   sign(s), s = f(x) = sum of a_i K(x_i, x) over the support examples, the x_i kept;
//             K(x, z) = k(x, z) + b^2 with k linear, polynomial or Gaussian (core/learner/kernel.h)
//   mistake   y s <= 0, or as the tie rule has it
//   update    on a mistake (x, y) is kept with a = y. If that makes B + 1: all a_i *= phi, and the
//             oldest, (x_r, y_r), is removed. phi in (0, 1] is the largest for which the damage
//             done so far, Q, stays within 15/32 of the mistakes so far:
//             Q += Psi(|a_r|, y_r f(x_r) / R^2), Psi(l, m) = l^2 + 2 l - 2 l m, after the
//             shrinking; R^2 the largest K(x, x) of any example kept so far
//   loss      max(0, -y s)
//   bound     while nothing was removed it is the perceptron: at most (R / gamma)^2 updates, gamma
//             the margin in the kernel's space. With B >= 83, against any g with norm R ||g|| <=
//             sqrt((B + 1) / ln(B + 1)) / 4: at most 2 R^2 ||g||^2 + 4 sum of g's hinge losses
//             mistakes, if no example after the first that was removed has a larger K(x, x) than
//             those before: always so with the Gaussian kernel, R^2 = 1 + b^2, and where all
//             examples have one norm. Nothing is proven of other streams, or of a smaller budget.
//             The proof is in tests/core/learner/forgetron_bound_test.cc
//   source    Dekel, Shalev-Shwartz, Singer: The Forgetron: A Kernel-Based Perceptron on a Budget,
//             SIAM J. Comput. 37, 2008: the self-tuned algorithm. It removes the oldest, and with
//             it what a drifting stream has made wrong. Two labels: the analysis is for these
//
// There are no weights: norms are those in the kernel's space. A score costs O(B row.size), and so
// do an update and the norm without the bias. Memory: the rows kept.
#pragma once

#include "core/learner/kernel_expansion.h"
#include "core/learner/learner.h"

namespace perceptrond {

// The update and its budget. The function f, which predicts and explains, is a KernelExpansion.
class KernelPerceptron final : public Learner {
 public:
  KernelPerceptron(const LearnerSettings& settings, size_t size);

  Evaluation Evaluate(const Row& row, int32_t label) const override;
  void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                    std::span<EvaluatedRow> evaluated) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  void Grow(size_t size) override { function_.Grow(size); }
  size_t size() const override { return function_.size(); }
  double augmented_squared_norm() const override { return function_.augmented_squared_norm(); }
  LearnerStateView State() const override;
  size_t max_arrays() const override { return 0; }
  bool Restore(LearnerState state) override;
  const Predictor& predictor() const override { return function_; }
  const Explainable* explainable() const override { return &function_; }

 private:
  void ShrinkAndRemove();

  const size_t budget_;
  KernelExpansion function_;
  uint64_t mistakes_ = 0;
  // Q.
  double damage_ = 0;
  // R^2.
  double squared_radius_ = 0;
};

}  // namespace perceptrond
