// A separator as a model can take it: in float32.
#pragma once

#include <optional>
#include <span>

#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// w, of rows.columns() values that are not all 0, made one long and rounded to float32, with the
// floor that it has then. Nothing if it no longer separates the rows, or cannot be told to.
// O(nonzeros), not to be cancelled. Any thread may call it.
std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w);

}  // namespace perceptrond
