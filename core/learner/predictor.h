// The decision function of a learner: scores and labels for rows without labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/vector/check.h"
#include "core/vector/float_array.h"
#include "core/vector/row.h"

namespace perceptrond {

// One score vector, by feature: s = weights . x + bias.
struct Hypothesis {
  FloatArray weights;
  double bias = 0;
};

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
  virtual ~Predictor() = default;

  // K. O(1).
  virtual size_t scores() const = 0;
  // Features there is room for. O(1).
  virtual size_t size() const = 0;
  // Whether a label may be predicted: -1 or +1, or a class that exists. Takes any number. O(1).
  virtual bool HasLabel(int32_t label) const = 0;

  // Writes the row's K scores. Indices must be below size(). O(K row.size) unless the learner's
  // banner says otherwise.
  virtual void Score(const Row& row, uint64_t age, std::span<double> scores) const = 0;
  // CheckRow and Score for the rows of a batch from `first` on that nobody has checked yet, one for
  // each code; `scores` holds K per row. The scores of a row with an error mean nothing.
  virtual void ScoreRows(const Batch& batch, size_t first, size_t max_features, uint64_t age,
                         std::span<ValidationCode> codes, std::span<double> scores) const;
  // The label that a row's K scores predict, by the tie rule; -1 if no class exists. O(K).
  virtual int32_t Label(std::span<const double> scores) const = 0;

  // ||theta||^2 of the vectors that score, all K together and without their biases; 0 if no vectors
  // do. O(K) unless the learner's banner says otherwise.
  virtual double squared_norm(uint64_t age) const = 0;
  // The vector of score k < K. If no vector makes the score: the one that the learner learns with,
  // or an empty one. O(size()).
  virtual Hypothesis MakeHypothesis(size_t k, uint64_t age) const = 0;
};

}  // namespace perceptrond
