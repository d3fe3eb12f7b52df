// Bounds of the margin that hold whatever float64 rounds away.
//
//   rule      a sum of n rounded products, in any order, is off by at most
//             g(n) sum |a_i b_i| + n 2^-1074, g(n) = n u / (1 - n u), u = 2^-53
//   source    Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1; the second
//             term is that of products that underflow
#pragma once

#include <span>
#include <vector>

#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

struct Margins {
  // At most min_i w . z_i / ||w||; 0 if that cannot be told to be positive.
  double floor = 0;
  // w . z_i of each row, rounded. Incomplete if the checkpoint ended it.
  std::vector<double> scores;
};

// What w, of rows.columns() finite values, attains. O(nonzeros).
Margins MeasureMargins(const SignedRows& rows, std::span<const double> w,
                       CancellationToken& cancellation);

// At least ||sum multiplier_i z_i|| / sum multiplier_i; infinite if it cannot be told. The
// multipliers are at least 0. O(nonzeros of the support + columns).
double MarginCeiling(const SignedRows& rows, std::span<const SupportVector> support);

}  // namespace perceptrond
