// The interface of an update rule. One rule a file; core/learner/catalogue.h lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/learner/row_store.h"
#include "core/vector/check.h"
#include "core/vector/float_array.h"
#include "core/vector/row.h"

namespace perceptrond {

// What a learner thinks of a labelled example before learning it.
struct Evaluation {
  // s = theta . x + offset. Of several classes the margin: the score of the example's class less
  // the greatest other's; infinity if there is no other.
  double score = 0;
  // The label the score predicts, by the tie rule. Of several classes -1 before there is one.
  int32_t predicted = 0;
  // Of several classes: the other one of the greatest score; -1: there is none.
  int32_t rival = -1;
  // The prediction is wrong, by the tie rule.
  bool mistake = false;
  // The rule calls for an update. Every mistake does; some rules also learn from a margin that is
  // too small.
  bool update = false;
  // The rule's own loss.
  double loss = 0;
};

// A row that was checked, and judged if it has no fault.
struct EvaluatedRow {
  ValidationCode code = ValidationCode::kNone;
  double squared_norm = 0;
  Evaluation evaluation;
};

// What an update is to learn besides the features.
struct Target {
  // -1 or +1, or of several classes the class's number.
  int32_t label = 0;
  // How much the example counts: > 0, 1 for one like any other.
  double weight = 1;
  // How many examples the model judged before this one: what rules that count survivals go by. It
  // is journaled for them (CatalogueEntry::counts_examples); others must not look.
  uint64_t age = 0;
};

// Everything that makes up a learner's state, in the learner's own fixed order.
struct LearnerState {
  std::vector<FloatArray> arrays;
  std::vector<double> scalars;
  RowStore rows;
};

// The same, seen where it lies.
struct LearnerStateView {
  std::vector<std::span<const float>> arrays;
  std::vector<double> scalars;
  // Null: the learner keeps none.
  const RowStore* rows = nullptr;
};

class Multiclass;

// An update as a model retains it: the example, what it was to teach, and its score before.
struct PastUpdate {
  Row row;
  Target target;
  double score = 0;
};

// What one update's example contributes to an answer, of learners that keep their examples.
struct AnswerTerm {
  // How many updates came after it.
  uint64_t updates_since = 0;
  int32_t label = 0;
  // K(x_i, x).
  double similarity = 0;
  double contribution = 0;
};

// A linear hypothesis, by feature: s = weights . x + offset.
struct Hypothesis {
  FloatArray weights;
  double offset = 0;
};

// Holds weights and the rule that changes them.
//
// Thread contract: const methods may run at once with each other; every other method excludes
// everything. core/model sees to that with one lock.
//
// Contract of every learner (tests/core/learner/conformance_test.cc runs over the whole catalogue):
//   - Judge, Score, Answer and Predict change nothing;
//   - Update is called only with the judgement of this very state, and only if it calls for one;
//   - the same updates in the same order from the same settings give the same bits, on every
//     machine: no function whose last digit a C library may choose;
//   - rows are well formed (core/vector/check.h) and their indices below size().
class Learner {
 public:
  virtual ~Learner() = default;

  // What the rule learns by. O(row.size).
  virtual double Score(const Row& row) const = 0;
  // The label a score stands for. O(1).
  virtual int32_t Predict(double score) const = 0;
  // Whether (row, label) is a mistake on this state. label is -1 or +1, or the number of a class.
  // O(row.size), times the classes.
  virtual Evaluation Evaluate(const Row& row, int32_t label) const = 0;
  // CheckRow, for rows of size() features, and Judge, for the rows of a batch from `first` on that
  // nobody checked yet, as many as there is room for; their labels may be anything. Rules that need
  // no more than the score look at the features once. Of several classes: not to be called.
  virtual void EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                            std::span<EvaluatedRow> evaluated) const;
  // Whether Update would leave every weight within float32's range. A row's index may stand for
  // several new features of weight 0. O(row.size).
  virtual bool CanUpdate(const Row& row, const Target& target,
                         const Evaluation& evaluation) const = 0;
  // Learns from an example whose judgement calls for an update that CanUpdate allows. O(row.size)
  // unless the rule's banner says otherwise.
  virtual void Update(const Row& row, const Target& target, const Evaluation& evaluation) = 0;

  // Of rules that learn by batches: whether what came of this batch's examples still waits to be
  // taken in. O(1).
  virtual bool BatchWaits() const { return false; }
  // Whether it waits and its batch has ended by its size once the model has judged `age` examples.
  // O(1).
  virtual bool BatchIsFull(uint64_t /*age*/) const { return false; }
  // Takes it in: an update without an example. Only while it waits.
  virtual void EndBatch() {}

  // What the model answers with, after it judged `age` examples: for most rules Score; others keep
  // a better hypothesis than the one they learn with. O(row.size).
  virtual double Answer(const Row& row, uint64_t age) const = 0;
  // ||theta||^2 of that hypothesis, without the offset; 0 if it is no one vector. O(1) unless the
  // rule's banner says otherwise.
  virtual double answer_squared_norm(uint64_t age) const = 0;
  // That hypothesis. Of a learner that is not linear (CatalogueEntry::form) what it learns with, or
  // nothing.
  virtual Hypothesis AnswerHypothesis(uint64_t age) const = 0;
  // What a learner of several classes answers with; null: it has two. Of several classes Score and
  // Answer are the greatest of their scores, Predict is 0 and AnswerHypothesis is empty.
  virtual const Multiclass* multiclass() const { return nullptr; }
  // The probability of +1 at a score, where the rule has one.
  virtual std::optional<double> Probability(double /*score*/) const { return std::nullopt; }

  // What a feature of value 1 adds to Answer, which is that of no features plus the sum of these
  // over the row; absent: the rule's answer is no such sum. The index must be below size(). O(1).
  virtual std::optional<double> AnswerWeight(uint32_t /*index*/, uint64_t /*age*/) const {
    return std::nullopt;
  }

  // How much of a past update's (x_i, b) the answer's weights have: 0 if it did not come to be part
  // of them. Answer is what the weights it started from, or adopted last, make of the row, plus the
  // sum of this times x_i . x + b^2 over the updates since, but for float32's rounding. Absent: not
  // known; always so if the learner's entry in the catalogue says why. O(row.size).
  virtual std::optional<double> AnswerShare(const PastUpdate& /*update*/, uint64_t /*age*/) const {
    return std::nullopt;
  }
  // Of a learner that keeps its examples: the terms whose sum Answer is, the oldest first. As long
  // as Answer takes.
  virtual std::vector<AnswerTerm> AnswerTerms(const Row& /*row*/) const { return {}; }

  // Whether it can take weights from elsewhere in the place of those it learned.
  virtual bool CanReplaceWeights() const { return false; }
  // Takes them: those of `weights`, whose indices lie below size(), 0 for all others, and that of
  // the offset's coordinate; after it judged `age` examples. What it keeps besides of how its
  // weights fared begins anew. Only if CanAdopt. O(size()).
  virtual void ReplaceWeights(const Row& /*weights*/, float /*offset_weight*/, uint64_t /*age*/) {}

  // Makes room for features up to `size` - 1, with weight 0. Never shrinks.
  virtual void Grow(size_t size) = 0;
  // How many features there is room for.
  virtual size_t size() const = 0;
  // ||theta||^2 of what the rule learns with: of the weights alone, and with the offset's weight
  // among them (augmented). O(1), or O(classes), unless the rule's banner says otherwise.
  virtual double squared_norm() const = 0;
  virtual double augmented_squared_norm() const = 0;

  // For saving. The view holds until the next change.
  virtual LearnerStateView State() const = 0;
  // The most arrays that State() may come to have.
  virtual size_t most_arrays() const { return State().arrays.size(); }
  // Takes a state that State() gave, of a learner with the same settings: the same bits from then
  // on. False, and nothing changed, if the state has another shape or holds what is no finite
  // number.
  virtual bool Restore(LearnerState state) = 0;
};

}  // namespace perceptrond
