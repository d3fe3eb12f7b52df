// Few rows of which some combination seems to vanish, by Clp.
#pragma once

#include <span>
#include <vector>

#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// Of the rows `chosen`, those of a vertex of the lambda >= 0 with sum lambda_i z_i = 0 and
// sum lambda_i = 1, as the dual simplex finds it within float64's tolerance. At most one more than
// their rank, and in exact arithmetic their combination would be the only one that vanishes. Empty
// if there seems to be no such lambda, or if the token was cancelled, which is checked after each
// pivot. Any thread may call it.
std::vector<size_t> FindVanishingVertex(const SignedRows& rows, std::span<const size_t> chosen,
                                        CancellationToken& cancellation);

}  // namespace perceptrond
