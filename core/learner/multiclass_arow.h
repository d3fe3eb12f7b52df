// Adaptive regularization of weight vectors of several classes, with a diagonal covariance a class.
//
//   predict   the k of the greatest s_k = w_k . x + w_kb b
//   loss      l = max(0, 1 - m), m = s_y - s_r, r the best class but y (top-1)
//   update    if l > 0, with v = sum over k in {y, r} of sum S_ki x_i^2 (b's among them) and
//             beta = 1 / (v + r'):
//               w_yi += l beta S_yi x_i,  w_ri -= l beta S_ri x_i,
//               S_ki -= beta S_ki^2 x_i^2 for k in {y, r};  S starts at 1;  r': regularization
//   bound     none for the diagonal
//   source    Crammer, Kulesza, Dredze: Adaptive Regularization of Weight Vectors, NIPS 2009, on
//   the
//             top-1 constraint of Crammer, Dredze, Kulesza: Multi-Class Confidence Weighted
//             Algorithms, EMNLP 2009, section 4
//
// Memory: twice the perceptron's.
#pragma once

#include <vector>

#include "core/learner/multiclass_linear.h"

namespace perceptrond {

class MulticlassArow final : public MulticlassLinear {
 public:
  MulticlassArow(const LearnerSettings& settings, size_t size);

  bool CanUpdate(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  size_t most_arrays() const override { return 2 * max_classes(); }
  bool Restore(LearnerState state) override;

 protected:
  double Loss(double margin) const override { return margin < 1 ? 1 - margin : 0; }
  bool Moves(double margin, bool /*mistake*/) const override { return margin < 1; }
  // Along S (x, b).
  double Step(const Row& row, const Target& target, const Evaluation& evaluation) const override;
  void AddClasses(size_t classes) override;

 private:
  // S of one class, the offset's a float32 value, like w_b.
  struct Variances {
    FloatArray features;
    double offset = 1;
  };

  // beta.
  double Confidence(const Row& row, int32_t label, int32_t rival) const;
  double Variance(const Row& row, int32_t label) const;
  bool StaysFiniteAlongS(int32_t label, double step, const Row& row) const;
  void Move(int32_t label, double step, double confidence, const Row& row);

  const double regularization_;
  // By class.
  std::vector<Variances> variances_;
};

}  // namespace perceptrond
