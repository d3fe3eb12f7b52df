// What a learner of several classes answers with: one discriminant a class, the greatest wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/learner/learner.h"
#include "core/vector/row.h"

namespace perceptrond {

// Classes are numbers from 0. Thread contract: as Learner's.
class Multiclass {
 public:
  virtual ~Multiclass() = default;

  // Above every class that has come up. Where classes may come up mid-stream there may be gaps.
  virtual size_t classes() const = 0;
  // Whether the class has come up. Any number may be asked for. O(1).
  virtual bool HasClass(int32_t label) const = 0;
  // Each class's score after `age` judged examples (Learner::Answer), into classes() places; NaN
  // for a number that has not come up. O(classes x row.size).
  virtual void Answers(const Row& row, uint64_t age, std::span<double> scores) const = 0;
  // The hypothesis behind that score, of a number below classes().
  virtual Hypothesis ClassHypothesis(size_t number, uint64_t age) const = 0;
  // One weight of it, in float64. O(1).
  virtual double ClassWeight(size_t number, uint32_t index, uint64_t age) const = 0;
  // The weights that a class learns with. The view holds until the next change.
  virtual std::span<const float> ClassWeights(size_t number) const = 0;

  virtual bool has_probabilities() const { return false; }
  // Turns the scores of Answers into the classes' probabilities, where the rule has them. NaN stays
  // NaN. O(classes).
  virtual void ToProbabilities(std::span<double> /*scores*/) const {}
};

}  // namespace perceptrond
