// The pocket algorithm of several classes: learns as the perceptron does and answers with the
// weights of all classes that had the longest run of correct answers together.
//
//   predict   the k of the greatest s_k = w_k . x + w_kb b by the pocket's weights, or by the
//             present ones once they could go there
//   update    the perceptron's (multiclass_perceptron.h), on the perceptron's mistakes
//   pocket    when a run of correct answers ends that was longer than the pocket's, the weights
//             that had it go there, those of all classes: O(weights), as often as the record is
//             broken. A class that came up since has weights of zero there, as when it came up
//   ratchet   with ratchet_examples = N: only if they also err on no more of the latest N examples
//             that caused updates, as pocket.h has it: O(N classes row.size) an update
//   bound     the perceptron's, on its updates; the pocket converges in probability to the weights
//             with the fewest errors when examples are drawn at random: by Kesler's construction a
//             run over several classes is a run over one long vector
//   source    Gallant: Perceptron-Based Learning Algorithms, IEEE Trans. Neural Networks 1, 1990,
//             on winner-take-all groups
#pragma once

#include <vector>

#include "core/learner/multiclass_perceptron.h"

namespace perceptrond {

class MulticlassPocket final : public MulticlassPerceptron {
 public:
  MulticlassPocket(const LearnerSettings& settings, size_t size);

  void Update(const Row& row, const Target& target, const Evaluation& evaluation) override;
  double answer_squared_norm(uint64_t age) const override;
  Hypothesis ClassHypothesis(size_t number, uint64_t age) const override;
  double ClassWeight(size_t number, uint32_t index, uint64_t age) const override;
  void Grow(size_t size) override;
  LearnerStateView State() const override;
  size_t most_arrays() const override { return 2 * max_classes(); }
  bool Restore(LearnerState state) override;

 protected:
  double AnswerOf(size_t number, const Row& row, uint64_t age) const override;
  void AddClasses(size_t classes) override;

 private:
  // What a class answers with.
  const LinearWeights& Best(size_t number, uint64_t age) const;
  // Whether the present weights belong into the pocket after `run` correct answers.
  bool Wins(uint64_t run) const { return run > best_run_ && ratchet_turns_; }
  // Keeps an example for the ratchet, and forgets the oldest beyond N.
  void Keep(const Row& row, int32_t label);
  // Of those kept: by the pocket's weights, or by the present ones.
  size_t Errors(bool pocket) const;
  // Sets ratchet_turns_.
  void Compare();

  // N.
  const size_t ratchet_;
  // By class.
  std::vector<LinearWeights> pocket_;
  // Correct answers in a row that the pocket had.
  uint64_t best_run_ = 0;
  // How many examples had been judged when the present weights came to be.
  uint64_t run_start_ = 0;
  // The examples kept; coefficients: their classes. Without ratchet none.
  RowStore kept_;
  // The present weights err on no more of them than the pocket's; always so without ratchet.
  bool ratchet_turns_ = true;
};

}  // namespace perceptrond
