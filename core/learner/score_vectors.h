// The weights of a linear learner: K vectors, each of which gives a row a score.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/learner/decision.h"
#include "core/learner/settings.h"
#include "core/learner/state.h"
#include "core/vector/arithmetic.h"
#include "core/vector/check.h"
#include "core/vector/float_array.h"
#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond {

// One vector: a weight per feature and one for the constant input b, with the norm kept up to date.
// A plain value; not thread-safe.
struct LinearWeights {
  explicit LinearWeights(size_t size = 0) : weights(size) {}

  FloatArray weights;
  // Kept in float64, but always a float32 value, so that the constant input and a column of b's
  // learn the same bits.
  double bias_weight = 0;
  // ||weights||^2.
  CompensatedSum squared_norm;

  double Score(const Row& row, double bias_input) const {
    return Dot(weights, row) + bias_weight * bias_input;
  }
  // Whether everything stays within float32 when step (row, b) is added.
  bool StaysFinite(double step, const Row& row, double bias_input) const;
  // += step (row, b).
  void Add(double step, const Row& row, double bias_input);

  // Reads what Append appended.
  static LinearWeights Read(StateReader& state);
};

// With two labels K is 1. With several classes K is one above the highest class that exists; a
// class exists from the start or from the first example that it is added for; then it begins with
// weights of zero. theta is all K vectors together, each times scale(), a common factor that is 1
// for most rules.
//
// The class holds the vectors, scores rows by them and lets a rule change them. Each other job is
// done elsewhere, through this interface:
//   - what scores mean, labels, mistakes and ties: DecisionRule (core/learner/decision.h);
//   - the norms, and saving and restoring: the functions after the class.
//
// Thread contract: as Learner's.
class ScoreVectors {
 public:
  // Zero, but for settings.start, whose indices must be below size.
  ScoreVectors(const LearnerSettings& settings, size_t size);
  // Other vectors with the settings of `like`, and the scale 1. exists: by class, whether it does;
  // one entry for each vector. Every vector has `size` weights.
  ScoreVectors(const ScoreVectors& like, size_t size, std::vector<LinearWeights> vectors,
               std::vector<bool> exists);

  const DecisionRule& decision() const { return decision_; }
  bool is_multiclass() const { return decision_.is_multiclass; }
  // K, the number of vectors, and the largest that K can become.
  size_t count() const { return vectors_.size(); }
  size_t max_count() const { return max_count_; }
  size_t size() const { return size_; }
  // b, the constant input.
  double bias_input() const { return bias_input_; }
  // Whether it is one of the two labels, or a class that exists. Takes any number.
  bool Has(int32_t label) const;

  // Vector k < count(), without the scale.
  const LinearWeights& operator[](size_t k) const { return vectors_[k]; }
  LinearWeights& operator[](size_t k) { return vectors_[k]; }
  double scale() const { return scale_; }
  void set_scale(double scale) { scale_ = scale; }
  // Multiplies the scale into the weights. O(K size()).
  void ApplyScale();

  double Score(size_t k, const Row& row) const {
    return scale_ * vectors_[k].Score(row, bias_input_);
  }
  // A row's count() scores; NaN for a class that does not exist.
  void Scores(const Row& row, std::span<double> scores) const;
  // ||x||^2 + b^2.
  double AugmentedSquaredNorm(const Row& row) const {
    return SquaredNorm(row) + bias_input_ * bias_input_;
  }

  // Whether vector k stays within float32 when step (row, b) is added to it; k need not exist yet.
  bool StaysFinite(size_t k, double step, const Row& row) const;
  // Makes a class exist.
  void AddClass(int32_t label);
  void Grow(size_t size);
  // Adds the classes and features that only `other` has, which lacks none; new weights are zero.
  void GrowLike(const ScoreVectors& other);
  // Replaces vector k, and the scale, which all vectors share, by 1.
  void Replace(size_t k, const Row& weights, float bias_weight);

  // Two labels: checks and scores `count` rows of a batch from `first` on, for rows of size()
  // features, and calls take(i, code, scan, score) for each; with a diagonal of size() entries if
  // that is not empty. Score and scan of a row with an error mean nothing. Rows are scanned some at
  // a time: with nothing in between, their weights arrive together.
  template <typename Take>
  void ScanRows(const Batch& batch, size_t first, size_t count, size_t max_features,
                std::span<const float> diagonal, const Take& take) const;

 private:
  DecisionRule decision_;
  double bias_input_;
  size_t max_count_;
  size_t size_;
  double scale_ = 1;
  std::vector<LinearWeights> vectors_;
  // By class: whether it exists.
  std::vector<bool> exists_;
};

// ||theta||^2, without and with the biases. O(K).
double SquaredNorm(const ScoreVectors& vectors);
double AugmentedSquaredNorm(const ScoreVectors& vectors);

// Save vectors in a learner's state, but for their scale: a rule that changes it saves it.
// AppendWeights leaves out the size and which classes exist.
void Append(const LinearWeights& one, LearnerStateView& state);
void Append(const ScoreVectors& vectors, LearnerStateView& state);
void AppendWeights(const ScoreVectors& vectors, LearnerStateView& state);
// Reads what Append appended, for vectors with the settings of `like`; absent: it does not fit.
std::optional<ScoreVectors> ReadScoreVectors(StateReader& state, const ScoreVectors& like);
// Reads what AppendWeights appended, for vectors with the size and the classes of `like` too.
ScoreVectors ReadWeights(StateReader& state, const ScoreVectors& like);

template <typename Take>
void ScoreVectors::ScanRows(const Batch& batch, size_t first, size_t count, size_t max_features,
                            std::span<const float> diagonal, const Take& take) const {
  constexpr size_t kTogether = 64;
  const LinearWeights& linear = vectors_[0];
  const auto dimension = static_cast<uint32_t>(size_);
  const double bias = linear.bias_weight * bias_input_;
  const bool scans = batch.dense_width == 0 || batch.dense_width == dimension;
  std::array<RowScan, kTogether> scan;
  for (size_t done = 0; done < count; done += kTogether) {
    const size_t together = std::min(kTogether, count - done);
    if (scans)
      perceptrond::ScanRows(linear.weights, diagonal, batch, first + done,
                            std::span(scan).first(together));
    for (size_t i = 0; i < together; ++i) {
      const ValidationCode code = CheckScanned(batch.row(first + done + i), dimension, max_features,
                                               scan[i], batch.indices_are_checked);
      take(done + i, code, scan[i], scale_ * (scan[i].dot + bias));
    }
  }
}

}  // namespace perceptrond
