// The proof that nothing separates some rows, a positive combination of them that vanishes: guessed
// by Clp in float64, then found in integers.
#pragma once

#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// Few rows of which some combination seems to vanish: of the rows `chosen`, those of a vertex of
// the lambda >= 0 with sum lambda_i z_i = 0 and sum lambda_i = 1, the z_i brought to one scale
// (ScaledRows), as the dual simplex finds it within float64's tolerance. At most one more than their
// rank, and in exact arithmetic their combination would be the only one that vanishes. Empty if there
// seems to be no such lambda, or if the analysis was stopped, which is checked after each pivot. Any
// thread may call it.
std::vector<size_t> FindVanishingVertex(const SignedRows& rows, std::span<const size_t> chosen,
                                        AnalysisMonitor& monitor);

// Positive integers without a common divisor whose combination of `chosen` rows (some of them may
// be left out) is exactly 0. Checked over all columns before it is returned: float values are
// integers times powers of 2, so that nothing is rounded. Empty if there is none, if there are
// several independent ones, or if the analysis was stopped.
//
//   method    t rows of rank t - 1 have one combination but for a factor. With one row's multiplier
//             set to 1, the others solve a square system over the rationals: found modulo a prime
//             p, lifted to p^2, p^3, ..., until fractions reconstructed from that satisfy every
//             column
//   cost      O(t^3) once, O(t^2) multiplications of growing integers a digit; O(t) digits
//   source    Dixon, Exact solution of linear equations using p-adic expansions, 1982
//
// `chosen` strictly ascends. Any thread may call it.
std::vector<CertificateEntry> FindExactCombination(const SignedRows& rows,
                                                   std::span<const size_t> chosen,
                                                   AnalysisMonitor& monitor);

}  // namespace perceptrond
