// The interface of a learner: evaluate an example, update on it, save and restore the state.
// core/learner/catalogue.h lists the learners and makes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/learner/decision.h"
#include "core/learner/state.h"
#include "core/vector/check.h"
#include "core/vector/float_array.h"
#include "core/vector/row.h"

namespace perceptrond {

// A part of a score, linear in one vector: coefficient (vector . x + bias), or coefficient
// K(vector, x) of a kernel. Valid until the learner changes.
struct ScoreTerm {
  Row vector;
  double bias = 0;
  double coefficient = 1;
  // The score that it is added to. A class without a term does not exist.
  uint32_t score = 0;
  // The score that it is subtracted from.
  std::optional<uint32_t> rival;
  // The first term of a member: the scores begin anew.
  bool first_of_member = false;
  // The label of the scores by the terms so far gets this many votes.
  std::optional<double> votes;
};

// The decision function of a learner: scores and labels for rows without labels.
//
// A row has K scores. With two labels K is 1 and the score's sign is the label. With several
// classes K is one above the highest class that exists, and the greatest score wins; a class below
// it that does not exist yet scores NaN.
//
// `age` is the number of examples that the model has evaluated: some learners weigh hypotheses by
// how long they survived. Learners that do not (CatalogueEntry::separate_prediction_weights) ignore
// it.
//
// Thread contract: as Learner's; every method is const.
class Predictor {
 public:
  // Costs are those of this many features for a row that has more.
  static constexpr uint64_t kManyFeatures = uint64_t{1} << 32;

  virtual ~Predictor() = default;

  // K. O(1).
  virtual size_t scores() const = 0;
  // Features there is room for. O(1).
  virtual size_t size() const = 0;
  // Whether a label may be predicted: -1 or +1, or a class that exists. Takes any number. O(1).
  virtual bool HasLabel(int32_t label) const = 0;

  // Writes the row's K scores. Indices must be below size(). O(K row.size) unless the learner's
  // banner says otherwise. Asks KeepGoing (core/sync/cancellation.h): once that returned false the
  // scores mean nothing. So does Learner::Evaluate.
  virtual void Score(const Row& row, uint64_t age, std::span<double> scores) const = 0;
  // Multiply-adds that a row's scores take, or as much time; saturates. O(1).
  virtual uint64_t ScoreCost(uint64_t features) const {
    return std::min(features, kManyFeatures) * std::max<uint64_t>(1, scores());
  }
  // CheckRow and Score for the unchecked rows of a batch from `first` on, one for each code;
  // `scores` holds K per row. The scores of a row with an error mean nothing.
  virtual void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                         std::span<ValidationCode> codes, std::span<double> scores) const;
  // The label that a row's K scores predict, by the tie rule; -1 if no class exists. O(K).
  virtual int32_t Label(std::span<const double> scores) const = 0;

  // ||theta||^2 of the vectors that score, all K together and without their biases; 0 if no vectors
  // do. O(K) unless the learner's banner says otherwise.
  virtual double squared_norm(uint64_t age) const = 0;

  // All that a row's scores are made of, in order: their sum, or what their votes decide
  // (core/learner/voted.cc and weighted_majority.h). O(terms).
  virtual std::vector<ScoreTerm> Terms(uint64_t age) const = 0;
};

inline void Predictor::ScoreRows(const Batch& batch, size_t first, size_t max_features,
                                 uint64_t age, std::span<ValidationCode> codes,
                                 std::span<double> scores) const {
  const auto dimension = static_cast<uint32_t>(size());
  const size_t k = this->scores();
  for (size_t i = 0; i < codes.size(); ++i) {
    const Row row = batch.row(first + i);
    double squared_norm = 0;
    codes[i] = batch.indices_are_checked
                   ? CheckScanned(row, dimension, max_features, {true, SquaredNorm(row), 0}, true)
                   : CheckRow(row, dimension, max_features, &squared_norm);
    if (codes[i] == ValidationCode::kNone) Score(row, age, scores.subspan(i * k, k));
  }
}

// What some learners can do and others cannot is an interface each, found through Learner's
// accessors. Their thread contract is Learner's.

// Learners that evaluate the rows of a batch faster together than each alone: their weights are
// fetched from memory together. Two labels.
class BatchEvaluation {
 public:
  virtual ~BatchEvaluation() = default;
  // CheckRow, for rows of size() features, and Evaluate for the rows of a batch from `first` on, as
  // many as there is room for. Their labels may be anything: for one other than -1 and +1 the
  // evaluation means nothing. Rules that need no more than the score read each feature once.
  virtual void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                            std::span<EvaluatedRow> evaluated) const = 0;
};

// Learners that learn weights of features, whatever they predict with.
class LearnedWeights {
 public:
  virtual ~LearnedWeights() = default;
  // Whether every weight is exactly 0, those of the constant input included. O(K size()).
  virtual bool AreZero() const = 0;
  // Whether the weights of one feature are, in all K vectors. The index must be below size(). O(K).
  virtual bool AreZero(uint32_t index) const = 0;
};

// Learners whose weights change at the end of a batch of examples instead of at each mistake.
class BatchLearning {
 public:
  virtual ~BatchLearning() = default;
  // Whether the current batch has mistakes that the weights do not have yet. O(1).
  virtual bool IsPending() const = 0;
  // Examples until the batch is full, once the model has evaluated `age`: 0 if it is full, no limit
  // if it is not pending or has no size. O(1).
  virtual uint64_t ExamplesUntilFull(uint64_t age) const = 0;
  // Applies the batch to the weights: an update without an example. Must be pending.
  virtual void EndBatch() = 0;
};

// The weights of one score: of features, whose indices must be below size(), and of the constant
// input.
struct ReplacementVector {
  Row weights;
  float bias_weight = 0;
};

// Learners whose weights can be replaced by others.
class ReplaceableWeights {
 public:
  virtual ~ReplaceableWeights() = default;
  // Replaces the weights of score k by vectors[k], and all that are not listed by 0. No more
  // vectors than scores. What the learner remembers about how its weights performed begins anew
  // after `age` evaluated examples. O(K size()).
  virtual void ReplaceWeights(std::span<const ReplacementVector> vectors, uint64_t age) = 0;
};

// An update as a model stores it: the example, its target, and Evaluation::score and rival before.
struct PastUpdate {
  Row row;
  Target target;
  double score = 0;
  int32_t rival = -1;
};

// An example that a learner keeps, and its part of a score.
struct SupportExample {
  // Updates made after its own.
  uint64_t updates_since = 0;
  int32_t label = 0;
  // K(x_i, x).
  double kernel = 0;
  double dual_coefficient = 0;
};

// One score vector, by feature: s = weights . x + bias.
struct Hypothesis {
  FloatArray weights;
  double bias = 0;
};

// Learners whose scores are sums over features: each score is made by one vector.
class FeatureWeights {
 public:
  virtual ~FeatureWeights() = default;
  // What a feature of value 1 adds to score k < K; the score of a row is that of an empty row plus
  // the sum of these. The index must be below size(). O(1).
  virtual double FeatureWeight(size_t k, uint32_t index, uint64_t age) const = 0;
  // The vector of score k < K, rounded to float32. O(size()).
  virtual Hypothesis MakeHypothesis(size_t k, uint64_t age) const = 0;
};

// Learners whose scores are sums over the examples that caused their updates.
class DualForm {
 public:
  virtual ~DualForm() = default;
  // How much of a past update's (x_i, b) the prediction weights of score k contain; 0 if the update
  // did not move them. Score k of a row is that of the starting weights, or of those put in by
  // ReplaceWeights, plus the sum of this times x_i . x + b^2 over the updates since then, up to
  // float32's rounding. Absent: not known. O(row.size).
  virtual std::optional<double> DualCoefficient(size_t k, const PastUpdate& update,
                                                uint64_t age) const = 0;
};

// Learners that keep examples, and whose scores are sums over these.
class SupportExpansion {
 public:
  virtual ~SupportExpansion() = default;
  // The examples that the learner keeps, oldest first: their contributions add up to the row's
  // score. Costs as much as a score.
  virtual std::vector<SupportExample> SupportExamples(const Row& row) const = 0;
};

// Learners whose scores stand for probabilities.
class Probabilistic {
 public:
  virtual ~Probabilistic() = default;
  // Replaces a row's K scores by probabilities: of +1 with two labels, else of each class. NaN
  // stays NaN. O(K).
  virtual void ToProbabilities(std::span<double> scores) const = 0;
};

// Learners that are several, the members, and predict by their votes.
class MemberVotes {
 public:
  struct Member {
    // Its rule and what is set in it: "arow, regularization 0.1".
    std::string name;
    LearnerSettings settings;
    // Updates on which it was wrong, until it was retired.
    uint64_t mistakes = 0;
    // Its part of all votes; 0 once it is retired.
    double vote = 0;
    bool retired = false;
  };
  virtual ~MemberVotes() = default;
  virtual std::vector<Member> Members() const = 0;
};

// Weights, and the rule that changes them.
//
//   const Evaluation evaluation = learner.Evaluate(row, target.label);
//   if (evaluation.update && learner.CanUpdate(row, target, evaluation))
//     learner.Update(row, target, evaluation);
//
// Thread contract: const methods may run concurrently with each other; every other method must run
// alone. core/model guards this with one lock.
//
// Every learner keeps to this (tests/core/learner/conformance_test.cc runs over all of them):
//   - const methods change nothing;
//   - the same updates in the same order from the same settings give the same bits, on every
//     machine: no function is called whose last digit a C library may choose;
//   - rows are well formed (core/vector/check.h) and their indices below size().
class Learner {
 public:
  virtual ~Learner() = default;

  // Evaluates an example on the current weights. label is -1 or +1, or the number of a class below
  // max_classes. O(K row.size).
  virtual Evaluation Evaluate(const Row& row, int32_t label) const = 0;
  // Whether Update would leave every weight within float32's range. A row's index may stand for
  // several new features of weight 0. O(row.size).
  virtual bool CanUpdate(const Row& row, const Target& target,
                         const Evaluation& evaluation) const = 0;
  // Learns an example. The evaluation must be that of the current weights, call for an update, and
  // pass CanUpdate. O(row.size) unless the banner of the rule or wrapper says otherwise.
  virtual void Update(const Row& row, const Target& target, const Evaluation& evaluation) = 0;

  // Makes room for features up to `size` - 1, with weight 0. Never shrinks.
  virtual void Grow(size_t size) = 0;
  // Features there is room for. O(1).
  virtual size_t size() const = 0;
  // ||theta||^2 of the weights the rule learns with, biases included. O(K).
  virtual double augmented_squared_norm() const = 0;

  // The state, for saving. The view is valid until the next change.
  virtual LearnerStateView State() const = 0;
  // The most arrays that State() can ever have.
  virtual size_t max_arrays() const = 0;
  // Restores what State() returned for a learner with the same settings: the same bits from then
  // on. Returns false and changes nothing if the state has another shape or numbers that are not
  // finite.
  virtual bool Restore(LearnerState state) = 0;

  // The decision function. Valid until the next change.
  virtual const Predictor& predictor() const = 0;

  // Optional capabilities; null: it does not have them.
  virtual const BatchEvaluation* batch_evaluation() const { return nullptr; }
  virtual BatchLearning* batch_learning() { return nullptr; }
  virtual const LearnedWeights* learned_weights() const { return nullptr; }
  virtual ReplaceableWeights* replaceable_weights() { return nullptr; }
  virtual const FeatureWeights* feature_weights() const { return nullptr; }
  virtual const DualForm* dual_form() const { return nullptr; }
  virtual const SupportExpansion* support_expansion() const { return nullptr; }
  virtual const Probabilistic* probabilistic() const { return nullptr; }
  virtual const MemberVotes* member_votes() const { return nullptr; }
};

}  // namespace perceptrond
