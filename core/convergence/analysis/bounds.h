// Bounds of the margin that hold whatever float64 rounds away, and the separator that attains one
// in float32.
//
//   rule      a sum of n rounded products, in any order, is off by at most
//             g(n) sum |a_i b_i| + n 2^-1074, g(n) = n u / (1 - n u), u = 2^-53
//   source    Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1; the second
//             term is that of products that underflow
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

struct RowScore {
  size_t row = 0;
  // w . z, rounded.
  double score = 0;
};

struct Margins {
  // At most min_i w . z_i / ||w||; 0 if it is not known to be positive.
  double floor = 0;
  // Of each example its row of the lowest score. Incomplete if the analysis was stopped.
  std::vector<RowScore> lowest;
};

// What w, of rows.columns() finite values, attains. O(nonzeros K).
Margins MeasureMargins(const SignedRows& rows, std::span<const double> w, AnalysisMonitor& monitor);

// At least ||sum multiplier_i z_i|| / sum multiplier_i; infinite if no bound is known. The
// multipliers are at least 0. O(nonzeros of the support + columns).
double MarginCeiling(const SignedRows& rows, std::span<const RowMultiplier> support);

// w, of rows.columns() values that are not all 0, scaled to length 1 and rounded to float32, as a
// model's weights are, with the floor of the rounded weights. Absent if they are not known to
// separate the rows. O(nonzeros K); cannot be cancelled. Any thread may call it.
std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w);

// The weights of w that are not 0, rounded to float32: a vector for each block.
std::vector<WeightVector> ToWeightVectors(const SignedRows& rows, std::span<const double> w);

}  // namespace perceptrond
