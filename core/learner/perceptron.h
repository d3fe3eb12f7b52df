// The perceptron.
//
//   predict   sign(s), s = w . x + w_b b
//   mistake   y s <= 0, or as the tie rule has it
//   update    on a mistake only:  w += eta y x,  w_b += eta y b
//   loss      max(0, -y s): the update is a stochastic gradient step on its sum, the perceptron
//   risk bound     on data that (x, b) separates with margin gamma, from zero weights: at most (R /
//   gamma)^2 updates,
//             R^2 = max ||x||^2 + b^2, whatever the order and eta
//   source    Rosenblatt 1958; bound: Novikoff 1962. seeds 000, 001, 002, 003, 004
#pragma once

#include <vector>

#include "core/learner/learner.h"
#include "core/learner/settings.h"
#include "core/vector/compensated_sum.h"

namespace perceptrond {

class Perceptron final : public Learner {
 public:
  // `size` weights, zero but for settings.start, whose indices must be below size.
  Perceptron(const LearnerSettings& settings, size_t size);

  double Score(const Row& row) const override;
  int32_t Predict(double score) const override;
  Judgement Judge(const Row& row, int32_t label) const override;
  bool CanUpdate(const Row& row, int32_t label, const Judgement& judgement) const override;
  void Update(const Row& row, int32_t label, const Judgement& judgement) override;
  void Grow(size_t size) override;
  std::span<const float> weights() const override { return weights_; }
  double offset() const override { return offset_weight_ * offset_value_; }
  double squared_norm() const override { return squared_norm_.value(); }
  double augmented_squared_norm() const override {
    return squared_norm_.value() + offset_weight_ * offset_weight_;
  }
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 private:
  const double step_size_;
  const TieRule tie_rule_;
  const double offset_value_;
  std::vector<float> weights_;
  // w_b. Kept in float64, but always a float32 value, so that the offset and a column of b's learn
  // the same bits.
  double offset_weight_ = 0;
  // Of weights_, updated with each change.
  CompensatedSum squared_norm_;
};

}  // namespace perceptrond
