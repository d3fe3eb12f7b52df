// A function in a kernel's space, as a sum over the examples that it keeps:
//
//   f(x) = sum of a_i K(x_i, x)    K: core/learner/kernel.h;  a_i: the dual coefficients
//
// It predicts sign(f(x)), by the tie rule, for two labels.
#pragma once

#include <algorithm>
#include <vector>

#include "core/learner/capabilities.h"
#include "core/learner/decision.h"
#include "core/learner/kernel.h"
#include "core/learner/predictor.h"
#include "core/learner/row_store.h"

namespace perceptrond {

// The decision function of a kernel learner, and the arithmetic of its updates. There are no
// weights: norms are those in the kernel's space. A score, an addition and the norm without the
// bias cost O(rows row.size). Thread contract: as Learner's.
class KernelExpansion final : public Predictor, public Explainable {
 public:
  // The function 0, for rows of `size` features.
  KernelExpansion(const LearnerSettings& settings, size_t size);

  size_t scores() const override { return 1; }
  size_t size() const override { return size_; }
  bool HasLabel(int32_t label) const override { return label == 1 || label == -1; }
  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  int32_t Label(std::span<const double> scores) const override { return decision_.Label(scores); }
  double squared_norm(uint64_t age) const override;
  // Empty: it has no weights.
  Hypothesis MakeHypothesis(size_t /*k*/, uint64_t /*age*/) const override { return {}; }

  std::optional<double> FeatureWeight(size_t, uint32_t, uint64_t) const override {
    return std::nullopt;
  }
  std::optional<double> DualCoefficient(const PastUpdate&, uint64_t) const override {
    return std::nullopt;
  }
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
  const DecisionRule decision_;
  const Kernel kernel_;
  size_t size_;
  RowStore rows_;
  // By row: ||x_i||^2. Not part of a saved state, since the rows have it.
  std::vector<double> squared_norms_;
  // ||f||^2; rounding may bring it below 0.
  double squared_norm_ = 0;
};

}  // namespace perceptrond
