// The perceptron in a kernel's space, on a budget of B examples: the self-tuned Forgetron.
//
//   predict   sign(s), s = f(x) = sum of a_i K(x_i, x) over the support examples, the x_i kept;
//             K(x, z) = k(x, z) + b^2 with k linear, polynomial or Gaussian
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
// do an update and the norm without the bias. Memory: the rows kept, 8 bytes a feature; as much
// again at most if they are dense, and 4 KB (core/learner/row_store.h).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/learner/decision.h"
#include "core/learner/learner.h"
#include "core/learner/row_store.h"
#include "core/learner/settings.h"
#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond {

// A kernel: the inner product in a space whose vectors are never written out. K(x, z) = k(x, z) +
// b^2: Phi(x) includes the constant input b. Values are finite for all rows: they are limited to
// 1e150. The same bits on every machine. Any thread may use it.
class Kernel {
 public:
  // An example prepared for many products.
  struct Example {
    explicit Example(const Row& row);
    SortedRow row;
    double squared_norm;
  };

  explicit Kernel(const LearnerSettings& settings);

  // Replaces each of `values`, the inner products x . z of x with some z, by K(x, z);
  // squared_norms: ||z||^2. O(values).
  void Apply(double squared_norm, std::span<const double> squared_norms,
             std::span<double> values) const;
  // K(x, x), from x or from its ||x||^2; it never decreases with ||x||^2. O(1).
  double OfItself(const Example& x) const { return OfItself(x.squared_norm); }
  double OfItself(double squared_norm) const;
  // b, the constant input.
  double bias_input() const { return bias_input_; }
  // The largest number of features of which x is written out, for its products with all z: they take
  // 4 bytes each, a thread.
  static constexpr size_t kMostWrittenOut = size_t{1} << 22;
  // Multiply-adds that K of two sparse rows of these sizes, of `size` features, takes as long as;
  // blocks of dense rows take less. Where x is not written out each step of a merge waits for the
  // comparison before.
  static uint64_t Work(uint64_t x, uint64_t z, uint64_t size) {
    return size <= kMostWrittenOut ? 2 * z + 30 : 6 * (x + z) + 30;
  }

 private:
  const KernelSettings settings_;
  const double bias_input_;
};

// A function in a kernel's space, as a sum over the examples that it keeps:
//
//   f(x) = sum of a_i K(x_i, x)    a_i: the dual coefficients
//
// It predicts sign(f(x)), by the tie rule, for two labels. The decision function of a kernel
// learner, and the arithmetic of its updates. There are no weights: norms are those in the kernel's
// space. A score, an addition and the norm without the bias cost O(rows row.size). Thread contract:
// as Learner's.
class KernelExpansion final : public Predictor, public SupportExpansion {
 public:
  // The function 0, for rows of `size` features.
  KernelExpansion(const LearnerSettings& settings, size_t size);

  size_t scores() const override { return 1; }
  size_t size() const override { return size_; }
  bool HasLabel(int32_t label) const override { return label == 1 || label == -1; }
  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  uint64_t ScoreCost(uint64_t features) const override;
  int32_t Label(std::span<const double> scores) const override { return decision_.Label(scores); }
  double squared_norm(uint64_t age) const override;
  std::vector<ScoreTerm> Terms(uint64_t age) const override;
  std::vector<SupportExample> SupportExamples(const Row& row) const override;

  const DecisionRule& decision() const { return decision_; }
  const Kernel& kernel() const { return kernel_; }
  // The support examples; coefficients: a_i.
  const RowStore& rows() const { return rows_; }
  // ||f||^2, the bias included.
  double augmented_squared_norm() const { return std::max(0.0, squared_norm_); }
  double Score(const Kernel::Example& example) const;

  // f += label K(x, .) for an example (x, label) that scores `score`.
  void Add(const Row& row, const Kernel::Example& example, int32_t label, double score);
  // f = phi (f - a_0 K(x_0, .)) for the oldest example x_0, which scores `score`.
  void ShrinkAndRemoveOldest(double phi, double score);
  void Grow(size_t size);
  // Replaces the function. The rows must be sound for `size` features, the squared norm at least 0.
  void Restore(size_t size, double squared_norm, RowStore rows);

 private:
  // The inner products of a row, written out, with rows from `first` on, at most kRowsInBlock, for
  // which `products` must have room. Returns of how many.
  size_t Multiply(const float* written_out, size_t first, double* products) const;
  void AddFigures(const Row& row);
  // Calls take(i, K(x_i, x) and those of rows after i) until all rows had their turn or KeepGoing
  // returns false.
  template <typename Take>
  void ForEachKernel(const Kernel::Example& example, const Take& take) const;

  const DecisionRule decision_;
  const Kernel kernel_;
  size_t size_;
  RowStore rows_;
  // By row: ||x_i||^2, and its number of features. Not part of a saved state: the rows have them.
  std::vector<double> squared_norms_;
  std::vector<uint32_t> sizes_;
  // ||f||^2; rounding may bring it below 0.
  double squared_norm_ = 0;
};

// The update and its budget. The function f, which predicts and explains, is a KernelExpansion.
class KernelPerceptron final : public Learner {
 public:
  KernelPerceptron(const LearnerSettings& settings, size_t size);

  Evaluation Evaluate(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  void Grow(size_t size) override { function_.Grow(size); }
  size_t size() const override { return function_.size(); }
  double augmented_squared_norm() const override { return function_.augmented_squared_norm(); }
  LearnerStateView State() const override;
  size_t max_arrays() const override { return 0; }
  bool Restore(LearnerState state) override;
  const Predictor& predictor() const override { return function_; }
  const SupportExpansion* support_expansion() const override { return &function_; }

 private:
  void ShrinkAndRemove();

  const size_t budget_;
  KernelExpansion function_;
  uint64_t mistakes_ = 0;
  // Q, the damage done by removing examples, which the budget's bound limits.
  double damage_ = 0;
  // R^2, the largest squared norm of an example's image so far.
  double squared_radius_ = 0;
};

}  // namespace perceptrond
