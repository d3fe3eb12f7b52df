// The pocket wrapper: keeps in its pocket the weights that had the longest run of examples without
// an update, and predicts with those. For data that no weights separate. The rule learns as without
// it.
//
//   predict   by the scores of the pocket's weights, or of the newest once they qualify for it
//   pocket    when a run ends that was longer than the pocket's, its weights, those of all vectors,
//             replace the pocket's: O(K features), as often as the record is broken. A class that
//             appears later has weights of zero there
//   ratchet   with ratchet_examples = N: only if they also err on no more of the latest N examples
//             that caused updates. These are kept and scored at each update: O(K N row.size). So
//             luck alone wins no place. Gallant asks for fewer errors, but of all examples, where
//             as many is no improvement. Of the N kept it says that they cannot tell the two apart,
//             and the longer run decides as it does without a ratchet; otherwise weights that
//             separate everything would stay outside once those in the pocket are right on the N
//   bound     over the perceptron: its bound, on its updates; the pocket converges in probability
//             to the weights with the fewest errors when examples are drawn at random, for several
//             classes too, since by Kesler's construction their run is one over one long vector
//   source    Gallant: Perceptron-Based Learning Algorithms, IEEE Trans. Neural Networks 1, 1990
//             (winner-take-all groups for several classes); seed 001
//
// Memory: as much again as the weights, and the N rows.
#pragma once

#include <memory>
#include <utility>

#include "core/learner/linear_predictor.h"

namespace perceptrond {

class Pocket final : public LinearPredictor {
 public:
  Pocket(const LearnerSettings& settings, const ScoreVectors& learned)
      : Pocket(settings.ratchet_examples, learned, learned) {}

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                 std::span<ValidationCode> codes, std::span<double> scores) const override {
    Predictor::ScoreRows(batch, first, max_features, age, codes, scores);
  }
  double squared_norm(uint64_t age) const override { return SquaredNorm(Best(age)); }
  Hypothesis MakeHypothesis(size_t k, uint64_t age) const override;
  double FeatureWeight(size_t k, uint32_t index, uint64_t age) const override {
    return Best(age)[k].weights[index];
  }
  // 0 for updates after the weights in the pocket.
  std::optional<double> PartOfUpdate(uint64_t update_age, uint64_t age) const override;
  // The pocket holds the new weights too, without a run.
  void WeightsReplaced(uint64_t age) override;
  void BeforeUpdate(const LinearUpdate& update) override;
  void AfterUpdate(const LinearUpdate& update) override;
  void Resize() override;
  size_t arrays_per_vector() const override { return 1; }
  void AppendTo(LearnerStateView& state) const override;
  std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                        const ScoreVectors& read) const override;
  void Restored() override { Compare(); }

 private:
  Pocket(size_t ratchet, const ScoreVectors& learned, ScoreVectors pocket)
      : LinearPredictor(learned), ratchet_(ratchet), pocket_(std::move(pocket)) {}

  // The weights that predict.
  const ScoreVectors& Best(uint64_t age) const;
  // Whether the newest weights qualify for the pocket after a run.
  bool Wins(uint64_t run) const { return run > best_run_ && ratchet_turns_; }
  // On the examples kept.
  size_t Errors(const ScoreVectors& weights) const;
  // Sets ratchet_turns_.
  void Compare();

  // N.
  const size_t ratchet_;
  ScoreVectors pocket_;
  // The run that the pocket's weights had.
  uint64_t best_run_ = 0;
  // Examples evaluated when the pocket's weights were superseded: the updates before made them. 0:
  // they were not, or, with a run, it is not known.
  uint64_t pocket_end_ = 0;
  // Examples evaluated when the newest weights came to be.
  uint64_t run_start_ = 0;
  // The latest N examples that caused updates; coefficients: their labels.
  RowStore kept_;
  // The newest weights err on no more of them than the pocket's; always so without a ratchet.
  bool ratchet_turns_ = true;
};

}  // namespace perceptrond
