// The perceptron in a kernel's space, on a budget of B examples: the self-tuned Forgetron.
//
//   predict   sign(s), s = f(x) = sum of a_i K(x_i, x) over the examples kept, K(x, z) = k(x, z) +
//             b^2 with k linear, polynomial or Gaussian (core/learner/kernel.h)
//   mistake   y s <= 0, or as the tie rule has it
//   update    on a mistake (x, y) is kept with a = y. If that makes B + 1: all a_i *= phi, and the
//             oldest, (x_r, y_r), goes. phi in (0, 1] is the largest for which the damage done so
//             far, Q, stays within 15/32 of the mistakes so far: Q += Psi(|a_r|, y_r f(x_r) / R^2),
//             Psi(l, m) = l^2 + 2 l - 2 l m, after the shrinking; R^2 the largest K(x, x) kept yet
//   loss      max(0, -y s)
//   bound     while nothing was removed it is the perceptron: at most (R / gamma)^2 updates, gamma
//             the margin in the kernel's space. With B >= 83, against any g with norm R ||g|| <=
//             sqrt((B + 1) / ln(B + 1)) / 4: at most 2 R^2 ||g||^2 + 4 sum of g's hinge losses
//             mistakes, if no example after the first that was removed has a larger K(x, x) than
//             those before: always so with the Gaussian kernel, R^2 = 1 + b^2, and where all
//             examples have one norm. Nothing is proven of other streams, or of a smaller budget.
//             The proof is in tests/core/learner/forgetron_bound_test.cc
//   source    Dekel, Shalev-Shwartz, Singer: The Forgetron: A Kernel-Based Perceptron on a Budget,
//             SIAM J. Comput. 37, 2008: the self-tuned algorithm. The oldest goes: so does the
//             damage of a drifting stream
//
// There are no weights: norms are those in the kernel's space. A score costs O(B row.size), and so
// do an update and the norm without the offset. Memory: the rows kept.
#pragma once

#include <vector>

#include "core/learner/kernel.h"
#include "core/learner/learner.h"

namespace perceptrond {

class KernelPerceptron final : public Learner {
 public:
  KernelPerceptron(const LearnerSettings& settings, size_t size);

  double Score(const Row& row) const override;
  int32_t Predict(double score) const override;
  Evaluation Evaluate(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const override;
  std::vector<AnswerTerm> AnswerTerms(const Row& row) const override;
  double answer_squared_norm(uint64_t age) const override;
  // Nothing: it has no weights.
  Hypothesis AnswerHypothesis(uint64_t age) const override;
  void Grow(size_t size) override;
  size_t size() const override { return size_; }
  double squared_norm() const override;
  double augmented_squared_norm() const override { return squared_norm_; }
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 private:
  double Score(const Kernel::Example& example) const;
  void Keep(const Row& row, const Kernel::Example& example, const Target& target);
  void ShrinkAndForget();

  const TieRule tie_rule_;
  const size_t budget_;
  const Kernel kernel_;
  // Features there are.
  size_t size_;
  // Coefficients: a_i.
  RowStore rows_;
  // ||x_i||^2; not in the state, since the rows have them.
  std::vector<double> squared_norms_;
  // ||f||^2, the offset's coordinate in it.
  double squared_norm_ = 0;
  // M, Q and R^2.
  uint64_t mistakes_ = 0;
  double damage_ = 0;
  double squared_radius_ = 0;
};

}  // namespace perceptrond
