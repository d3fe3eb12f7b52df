// What the second-order rules share: a variance S per weight, the diagonal of a covariance, which
// says how little has been learned about the weight. A step moves theta along S z and shrinks S.
#pragma once

#include <vector>

#include "core/learner/linear_rule.h"

namespace perceptrond {

//   theta += length S z;   S_i -= shrink S_i^2 z_i^2, never below 0;   S starts at 1
//
// The constant input has a variance of its own. Memory: twice the weights. Replaced weights leave S
// as it is: it says how much was learned about each feature.
class ConfidenceRule : public LinearRule {
 public:
  static constexpr Needs kStepNeeds = Needs::kVariance;
  // An update moves each feature by a variance of its own, which is not kept.
  static constexpr bool kHasDual = false;
  static constexpr size_t kArraysPerVector = 1;

  // S of one score vector; the bias variance is a float32 value, like the bias weight.
  struct Variances {
    FloatArray features;
    double bias = 1;
  };
  struct Memory {
    // By vector.
    std::vector<Variances> variances;

    void Resize(size_t vectors, size_t size);
    void AppendTo(const ScoreVectors& vectors, LearnerStateView& state) const;
    bool Read(StateReader& state, ScoreVectors& vectors);
  };
  Memory memory;

  double Variance(const ScoreVectors& vectors, size_t k, const Row& row) const;
  bool CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const;
  void MakeMove(ScoreVectors& vectors, const Move& move, const Row& row);
};

}  // namespace perceptrond
