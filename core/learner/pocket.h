// The pocket algorithm: learns as the perceptron does and keeps in its pocket the weights that had
// the longest run of correct answers; it answers with those. For data that no weights separate.
//
//   predict   sign(s) by the pocket's weights, or by the present ones once they could go there
//   update    the perceptron's, on the perceptron's mistakes
//   pocket    when a run of correct answers ends that was longer than the pocket's, the weights
//   that
//             had it go there: O(weights), as often as the record is broken
//   ratchet   with ratchet_examples = N: only if they also err on no more of the latest N examples
//             that caused updates; these are kept, and gone through at each update: O(N row.size).
//             So luck alone wins no place. Gallant asks for fewer errors, but of all examples,
//             where as many means no better; of the N kept it means that they cannot tell the two
//             apart, and the longer run decides as it does without ratchet. Else weights that
//             separate everything would stay outside once those in the pocket are right on the N
//   bound     the perceptron's, on its updates; the pocket converges in probability to the weights
//             with the fewest errors when examples are drawn at random
//   source    Gallant: Perceptron-Based Learning Algorithms, IEEE Trans. Neural Networks 1, 1990;
//             seed 001
#pragma once

#include <vector>

#include "core/learner/perceptron.h"

namespace perceptrond {

class Pocket final : public Perceptron {
 public:
  Pocket(const LearnerSettings& settings, size_t size)
      : Perceptron(settings, size), ratchet_(settings.ratchet_examples), pocket_(linear()) {}

  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double Answer(const Row& row, uint64_t age) const override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis AnswerHypothesis(uint64_t age) const override;
  std::optional<double> AnswerWeight(uint32_t index, uint64_t age) const override;
  // None of what came after the weights in the pocket.
  std::optional<double> AnswerShare(const PastUpdate& update, uint64_t age) const override;
  // The pocket holds them too, without a run.
  void ReplaceWeights(const Row& weights, float offset_weight, uint64_t age) override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  bool Restore(LearnerState state) override;

 private:
  // What the model answers with.
  const LinearWeights& Best(uint64_t age) const;
  // Whether the present weights belong into the pocket after `run` correct answers.
  bool Wins(uint64_t run) const { return run > best_run_ && ratchet_turns_; }
  // Keeps an example for the ratchet, and forgets the oldest beyond N.
  void Keep(const Row& row, int32_t label);
  // Of those kept.
  size_t Errors(const LinearWeights& weights) const;
  // Sets ratchet_turns_.
  void Compare();

  // N.
  const size_t ratchet_;
  LinearWeights pocket_;
  // Correct answers in a row that the pocket had.
  uint64_t best_run_ = 0;
  // How many examples had been judged when the pocket's weights gave way: the updates before it
  // made them. 0: none did, or, after a run, it is not known.
  uint64_t pocket_end_ = 0;
  // How many examples had been judged when the present weights came to be.
  uint64_t run_start_ = 0;
  // The examples kept; coefficients: their labels. Without ratchet none.
  RowStore kept_;
  // The present weights err on no more of them than the pocket's; always so without ratchet.
  bool ratchet_turns_ = true;
};

}  // namespace perceptrond
