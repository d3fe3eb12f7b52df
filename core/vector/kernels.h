// The only loops over features. Each fixes the order of its operations, so that every machine and
// every build computes the same bits: products of two float32 are exact in float64, sums run in
// eight lanes (term i in lane i % 8) that are added as ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)),
// and no operation may be contracted (the build says -ffp-contract=off). Inner products of two rows
// have an order of their own. The loops that every example goes through are in simd.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/vector/arithmetic.h"
#include "core/vector/row.h"

namespace perceptrond {

// weights . row, in float64. Every index of the row must be below weights.size(). O(row.size).
double Dot(std::span<const float> weights, const Row& row);

// ||row||^2, in float64; not finite iff one of the values is not. O(row.size).
double SquaredNorm(const Row& row);

// What one pass over a row computes.
struct RowScan {
  // The indices strictly ascend; so they do in a dense row.
  bool ascends = true;
  double squared_norm = 0;
  // With the weights; meaningless if an index is not below their number.
  double dot = 0;
  // WeightedSquaredNorm with the diagonal, if there is one; meaningless as dot.
  double weighted_squared_norm = 0;
};

// Dot, SquaredNorm and a check of the indices in one pass, for unchecked rows of a batch from
// `first` on, one for each scan. The columns must fit together; indices may be anything. Dense rows
// must not be wider than the weights, of which there must be at least one. The diagonal has as many
// entries as the weights, or none: then it is not scanned. O(features).
void ScanRows(std::span<const float> weights, std::span<const float> diagonal, const Batch& batch,
              size_t first, std::span<RowScan> scans);

// Whether every weight stays within float32 when step * row is added. O(row.size).
bool StaysFinite(std::span<const float> weights, double step, const Row& row);

// Whether step * row itself is within float32: what weights of zero would become. O(row.size).
bool StepStaysFinite(double step, const Row& row);

// weights += step * row, each weight rounded once from float64. Keeps squared_norm, ||weights||^2,
// up to date: the squares of the rounded weights come and go exactly. Every index must be below
// weights.size(), none twice. O(row.size).
void AddScaled(std::span<float> weights, double step, const Row& row, CompensatedSum& squared_norm);

// sum of a_i b_i over the row's indices i, in float64. O(row.size).
double DotAt(std::span<const float> a, std::span<const float> b, const Row& row);

// sum of diagonal_i x_i^2, in float64. O(row.size).
double WeightedSquaredNorm(std::span<const float> diagonal, const Row& row);

// StaysFinite and AddScaled with each step scaled by a diagonal: weights_i += step diagonal_i x_i.
bool StaysFiniteAlong(std::span<const float> weights, double step, std::span<const float> diagonal,
                      const Row& row);
void AddScaledAlong(std::span<float> weights, double step, std::span<const float> diagonal,
                    const Row& row, CompensatedSum& squared_norm);

// Whether |weights_i| <= most for the row's indices i. O(row.size).
bool StayWithin(std::span<const float> weights, double most, const Row& row);

// squares_i += (step x_i)^2, as AddSquare; weights_i += AdaptiveStep of eta, step x_i and the new
// squares_i, rounded once. Keeps squared_norm as AddScaled. O(row.size).
void AddAdaptive(std::span<float> weights, double eta, double step, std::span<float> squares,
                 const Row& row, CompensatedSum& squared_norm);

// variances_i -= confidence variances_i^2 x_i^2, each rounded once and never below 0. O(row.size).
void ShrinkVariances(std::span<float> variances, double confidence, const Row& row);

// weights *= factor, each rounded once; adds their squares to squared_norm. O(weights).
void Scale(std::span<float> weights, double factor, CompensatedSum& squared_norm);

// weights_i += factor sum_i and sum_i = 0 for each of the indices whose sum_i is not 0, with
// squared_norm as above. Indices ascend. O(indices).
void ApplySum(std::span<float> weights, double factor, std::span<float> sum,
              std::span<const uint32_t> indices, CompensatedSum& squared_norm);

// Whether sum + step * row, rounded, and weights + factor times that stay within float32.
// O(row.size).
bool StaysFiniteBy(std::span<const float> weights, double factor, std::span<const float> sum,
                   double step, const Row& row);

// The largest |step x_i|, if all of them are whole numbers; else infinity. O(row.size).
double LargestWholeStep(double step, const Row& row);

// IEEE binary16 as it is stored, two bytes a value with the lower first, to float32. O(values).
void HalvesToFloats(const char* halves, std::span<float> values);

bool AllZero(std::span<const float> values);
bool AllFinite(std::span<const float> values);
bool AllFinite(std::span<const double> values);

// A finite value as float32: what lies beyond its range becomes its largest number, not infinity.
inline float Saturate(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMax, kMax));
}

// A sum of squares plus another square, as float32; at most its largest number.
inline float AddSquare(double sum, double value) { return Saturate(sum + value * value); }

// eta gradient / sqrt(squares), 0 if squares is 0. At most eta in size, however squares, a sum with
// the gradient's own square, was rounded.
inline double AdaptiveStep(double eta, double gradient, double squares) {
  return squares > 0 ? eta * std::clamp(gradient / std::sqrt(squares), -1.0, 1.0) : 0;
}

// A row by ascending index: made once, to be multiplied with many other rows. Copies only a row
// that does not ascend, as in a space of named weights. The row must outlive it. Any thread may
// read it.
class SortedRow {
 public:
  // O(row.size); O(row.size log row.size) if it does not ascend.
  explicit SortedRow(const Row& row);
  SortedRow(const SortedRow&) = delete;
  SortedRow& operator=(const SortedRow&) = delete;

  const Row& row() const { return row_; }

 private:
  Row row_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

// x . z, in float64, summed one after the other by ascending index: the same bits for dense and
// sparse rows, and for zeros written or left out. z is sparse and strictly ascends; within a dense
// x. O(x.size + z.size); O(z.size) for a dense x.
double Dot(const SortedRow& x, const Row& z);

}  // namespace perceptrond
