// The voted wrapper: predicts with the votes of all the weights there were, each as often as it
// survived an example; of the latest, that is, as many as the budget. The rule learns as without
// it.
//
//   predict   two labels: sign(v), v = sum of c_i sign(s_i) / sum of c_i in [-1, 1]: s_i the score
//             of the weights after update i, c_i how many examples were evaluated from that update
//             to the next. Several classes: the class with the most votes, each hypothesis voting
//             c_i times for the class it predicts; the score of a class is its share of the votes
//   state     the latest B updates, with the step t_i of each, and the weights w' before them:
//             s_i = s_(i-1) + t_i (x_i . x + b^2), from s' = w' . x + w'_b b
//   budget    with more than B updates the oldest is added to w', which loses its own vote: B + 1
//             hypotheses vote
//   bound     over the perceptron: its bound, on its updates. After one pass over m examples drawn
//             at random, all weights voting: an expected error of at most 2 / (m + 1) times the
//             mistakes expected on m + 1 of them, and so 2 (R / gamma)^2 / (m + 1) where a margin
//             gamma separates them
//   source    Freund, Schapire: Large Margin Classification Using the Perceptron Algorithm, Machine
//             Learning 37, 1999: figure 1, corollary 1; several classes: each hypothesis is one
//             over Kesler's long vector, and votes for the class it predicts
//
// For rules whose updates are multiples of z. Predictions depend on the revision and on how many
// examples were evaluated. A prediction costs O(B (row.size + K)), learning what the rule's does.
// Memory: as much again as the weights, and the rows. No vector makes the predictions: hypotheses
// are the newest weights.
#pragma once

#include <deque>
#include <utility>

#include "core/learner/linear_predictor.h"

namespace perceptrond {

class Voted final : public LinearPredictor {
 public:
  Voted(const LearnerSettings& settings, const ScoreVectors& learned)
      : Voted(settings.budget, learned, learned) {}

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                 std::span<ValidationCode> codes, std::span<double> scores) const override {
    Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
  }
  double squared_norm(uint64_t /*age*/) const override { return 0; }
  // Votes of weights that it never had would have to be replaced with them.
  bool CanReplaceWeights() const override { return false; }
  void AfterUpdate(const LinearUpdate& update) override;
  void Resize() override;
  size_t arrays_per_vector() const override { return 1; }
  void AppendTo(LearnerStateView& state) const override;
  std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                        const ScoreVectors& read) const override;

 private:
  // An update besides its row and step.
  struct Kept {
    // Examples evaluated before it.
    uint64_t age = 0;
    // Of several classes.
    int32_t label = 0;
    int32_t rival = -1;
  };

  Voted(size_t budget, const ScoreVectors& learned, ScoreVectors below)
      : LinearPredictor(learned), budget_(budget), below_(std::move(below)) {}

  void VoteOnLabel(const Row& row, uint64_t age, std::span<double> scores) const;
  void VoteOnClass(const Row& row, uint64_t age, std::span<double> scores) const;
  // Adds the oldest update kept to the weights before them.
  void Lower();
  bool ReadUpdates(StateReader& state, const ScoreVectors& read);

  const size_t budget_;
  // w', and how many examples had been evaluated when it came to be. Its classes are those that
  // existed then.
  ScoreVectors below_;
  uint64_t below_age_ = 0;
  // Coefficients: t_i. 0 for an update that only made a class exist.
  RowStore updates_;
  std::deque<Kept> kept_;
};

}  // namespace perceptrond
