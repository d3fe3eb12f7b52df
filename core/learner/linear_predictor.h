// What a linear learner predicts with: its newest weights, or those of a wrapper.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/learner/learner.h"
#include "core/learner/linear_rule.h"
#include "core/learner/score_vectors.h"

namespace perceptrond {

// The vectors that a linear learner predicts with, one for each score.
class PredictionWeights : public FeatureWeights {
 public:
  // How much of an update made after `update_age` examples they contain, 0 to 1; absent: not known.
  virtual std::optional<double> PartOfUpdate(uint64_t update_age, uint64_t age) const = 0;
  // After the learner's weights were replaced, at `age` examples.
  virtual void WeightsReplaced(uint64_t age) = 0;
};

// Belongs to one learner, whose vectors it reads; the learner calls it before and after each
// update.
class LinearPredictor : public Predictor {
 public:
  explicit LinearPredictor(const ScoreVectors& learned) : learned_(learned) {}

  size_t scores() const final { return learned_.count(); }
  size_t size() const final { return learned_.size(); }
  bool HasLabel(int32_t label) const final { return learned_.Has(label); }
  int32_t Label(std::span<const double> scores) const override {
    return learned_.decision().Label(scores);
  }

  // Null: no vector makes the scores, and the learner's weights cannot be replaced.
  virtual PredictionWeights* weights() { return nullptr; }

  // Whether what the wrapper keeps stays within float32 through an update.
  virtual bool CanUpdate(const LinearUpdate& /*update*/) const { return true; }
  virtual void BeforeUpdate(const LinearUpdate& /*update*/) {}
  virtual void AfterUpdate(const LinearUpdate& /*update*/) {}
  // After the learner's vectors became more, or grew.
  virtual void Resize() {}

  // Arrays that it appends for each of the learner's vectors.
  virtual size_t arrays_per_vector() const { return 0; }
  virtual void AppendTo(LearnerStateView& /*state*/) const {}
  // Makes one like this from what AppendTo appended, for a learner whose vectors will be `read`;
  // null if it does not fit.
  virtual std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                                const ScoreVectors& read) const = 0;
  // After the learner's vectors were restored too.
  virtual void Restored() {}

 protected:
  const ScoreVectors& learned() const { return learned_; }

 private:
  const ScoreVectors& learned_;
};

// Vector k as it scores, rounded to float32. O(size()).
Hypothesis MakeHypothesis(const ScoreVectors& vectors, size_t k);
// One term for each class that exists. O(K).
std::vector<ScoreTerm> TermsOf(const ScoreVectors& vectors);
ScoreTerm TermOf(const LinearWeights& vector, double bias_input, double coefficient, size_t score);

// The wrappers, one a file: core/learner/averaged.cc, pocket.cc and voted.cc.
std::unique_ptr<LinearPredictor> MakeAveraged(const LearnerSettings& settings,
                                              const ScoreVectors& learned);
std::unique_ptr<LinearPredictor> MakePocket(const LearnerSettings& settings,
                                            const ScoreVectors& learned);
std::unique_ptr<LinearPredictor> MakeVoted(const LearnerSettings& settings,
                                           const ScoreVectors& learned);

// The prediction weights that settings.wrapper chooses.
std::unique_ptr<LinearPredictor> MakeLinearPredictor(const LearnerSettings& settings,
                                                     const ScoreVectors& learned);

}  // namespace perceptrond
