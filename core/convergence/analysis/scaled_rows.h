// The rows of an analysis brought to one scale, and a separator searched for there: features in units
// as different as seconds since 1970 and shares of one leave float64 no digits in theirs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// Row i is D z_i / r_i: D divides each feature by its largest magnitude, r_i is the length of the
// example that is left, so that a row has the length 1, the root of 2 with several classes. Weights w
// separate the z_i if and only if D^-1 w separates these rows, and a positive combination of the z_i
// vanishes if and only if one of these rows does. Immutable: any thread may read it.
class ScaledRows {
 public:
  // `rows` must outlive it. O(nonzeros).
  explicit ScaledRows(const SignedRows& rows);

  // Calls take(column, value) for each value of a row that is not 0.
  template <typename Take>
  void ForEach(size_t row, const Take& take) const {
    const double length = lengths_[rows_.example(row)];
    rows_.ForEach(row, [&](size_t column, double value) {
      take(column, value / largest_[column % rows_.width()] / length);
    });
  }
  // The score of a row that is not 0 by D^-1 w.
  double Dot(size_t row, std::span<const double> w) const {
    return rows_.Dot(row, w) / lengths_[rows_.example(row)];
  }
  // Adds `scale` times the row to D^-1 w.
  void AddScaled(size_t row, double scale, std::span<double> w) const {
    ForEach(row, [&](size_t column, double value) {
      w[column] += scale * value / largest_[column % rows_.width()];
    });
  }

 private:
  const SignedRows& rows_;
  // The largest magnitude of each column of a block.
  std::vector<double> largest_;
  // The length of each example after that division.
  std::vector<double> lengths_;
};

// Weights of rows.columns() values, with the floor that they attain over all rows; without weights:
// none were found.
struct FoundSeparator {
  std::vector<double> w;
  double floor = 0;
};

// Searches for weights that separate the rows, of whatever margin.
//
//   method    passes over the scaled rows: w += (1 - w . z) z / ||z||^2 where w . z < 1, the
//             passive-aggressive update
//   proves    by the floor alone. If a separator of length 1 has the margin g on the scaled rows, at
//             most 4 max ||z||^2 / g^2 scores are 1/2 or less before all are above, which leaves room
//             for float32's rounding
//   cost      O(nonzeros K) a pass; at most `max_passes`
//   source    Agmon, The Relaxation Method for Linear Inequalities, 1954; Crammer et al., Online
//             Passive-Aggressive Algorithms, 2006, theorem 2
FoundSeparator FindSeparator(const SignedRows& rows, size_t max_passes, AnalysisMonitor& monitor);

}  // namespace perceptrond
