// A separator in float32, as a model's weights are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// w, of rows.columns() values that are not all 0, scaled to length 1 and rounded to float32, with
// the floor of the rounded weights. Absent if they are not known to separate the rows. O(nonzeros
// K); cannot be cancelled. Any thread may call it.
std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w);

// The weights of w that are not 0, rounded to float32: a vector for each block.
std::vector<WeightVector> ToWeightVectors(const SignedRows& rows, std::span<const double> w);

}  // namespace perceptrond
