// Which rows support the largest margin of a small set, by LIBSVM.
#pragma once

#include <span>
#include <vector>

#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// Multipliers (positive, adding up to about 1) of those of the `working` rows whose combination is
// shortest.
//
//   problem   LIBSVM's one-class machine min alpha' Q alpha / 2, 0 <= alpha_i <= 1 / (nu n),
//             sum alpha_i = 1, with nu = 1 / n and Q_ij = z_i . z_j: the nearest point itself
//   accuracy  ||v||^2 to about 1e-4 R^2: not enough for a small margin, but it finds most of the
//             rows. Its float32 would allow 1e-7, in a number of steps that nothing bounds
//   cost      O(n^2) products of rows, 20 n^2 bytes; then LIBSVM's steps of O(n), which cannot be
//             interrupted: some 0.05 s for 1000 rows (docs/adr/0011)
//   source    Schoelkopf et al. 2001; Fan, Chen, Lin 2005 (the choice of pairs)
//
// `working` must not be empty. The result is empty if the token was cancelled. Any thread may call
// it.
std::vector<RowMultiplier> SolveWithSvm(const SignedRows& rows, std::span<const size_t> working,
                                        CancellationToken& cancellation);

}  // namespace perceptrond
