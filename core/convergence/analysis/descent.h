// The shortest combination of many rows.
#pragma once

#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// The shortest combination of the `working` rows by coordinate descent: cheap steps, so that the number of rows that
// support it hardly matters, and no square of that number is kept.
//
//   problem   max sum alpha_i - ||sum alpha_i z_i||^2 / 2, alpha >= 0: the dual of the hard-margin support vector
//             machine. alpha / sum alpha is the combination
//   method    alpha_i = max(0, alpha_i + (1 - w . z_i) / ||z_i||^2), w = sum alpha_i z_i, row by row in a random
//             order; from the combination `start` on
//   stops     when min_i w . z_i sum alpha >= (1 - tolerance) ||w||^2, or the combination is not longer than
//             `least_length`, or the part that is missing has not halved in 1,000 passes, or in
//             100 while the lowest score is not positive
//   cost      O(nonzeros of the working rows) a pass
//   source    Hsieh et al., A Dual Coordinate Descent Method for Large-scale Linear SVM, 2008, which is LIBLINEAR's
//
// The result, positive multipliers that add up to 1, is empty if the analysis was stopped; a row that is 0 is the result alone. Any thread
// may call it.
std::vector<RowMultiplier> ShortenByDescent(const SignedRows& rows, std::span<const size_t> working,
                                            std::span<const RowMultiplier> start, double tolerance,
                                            double least_length, AnalysisMonitor& monitor);

}  // namespace perceptrond
