// The shortest combination of rows, to the last digits of float64.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// A Cholesky factor whose rows can be added and removed: L with L L' = A, A symmetric and
// positive definite, n x n. Not thread-safe.
//
//   source    Golub, Van Loan, Matrix Computations, 2013, sections 4.2 and 6.5.4
class Cholesky {
 public:
  size_t size() const { return rows_.size(); }
  // A grows by a last row and column: `cross`, of size() values, and `diagonal`. False, and nothing
  // is changed, if it would not be positive definite to rounding. O(n^2).
  bool Append(std::span<const double> cross, double diagonal);
  // A loses row and column i. O((n - i)^2).
  void Remove(size_t i);
  // x with A x = b, which has size() values. O(n^2).
  std::vector<double> Solve(std::span<const double> b) const;

 private:
  // Row i has i + 1 values.
  std::vector<std::vector<double>> rows_;
};

// Improves multipliers until their combination is the nearest point to 0 of the rows' hull.
//
//   minimizes ||sum alpha_i z_i||^2, sum alpha_i = 1, alpha >= 0
//   method    the support's own minimum is a linear system. Where a multiplier turns negative, go
//             only so far that it becomes 0, drop its row and solve again; then add the row that
//             is most violated. Finite, since the minimum falls with every row added (Wolfe
//             1976). Here it starts from a support that is nearly right
//   accuracy  each system is solved for the change of alpha, from scores z_i . v that are computed
//             anew, and with 1e-13 R^2 added to its diagonal, so that no set of rows is dependent:
//             iterative refinement, which is the proximal point method (Rockafellar 1976)
//
// Not thread-safe.
class NearestPoint {
 public:
  enum class Outcome { kDone, kCancelled, kTooManyRows };

  // `rows` and `monitor` must outlive it.
  NearestPoint(const SignedRows& rows, size_t max_support, AnalysisMonitor& monitor);

  // Begins with this support. O(k^3 + k^2 nonzeros a row) for k rows.
  Outcome Start(std::span<const RowMultiplier> support);
  // Adds rows of `candidates`, which include the support, until none is violated by more than
  // `tolerance` relative to ||v||^2, or float64 shows no improvement, or there were four steps
  // for each candidate and 100 more. A step costs O(k^2 + nonzeros of the candidates + columns).
  Outcome Improve(std::span<const size_t> candidates, double tolerance);

  // Multipliers that are positive, adding up to 1 but for rounding.
  const std::vector<RowMultiplier>& support() const { return support_; }
  // v = sum alpha_i z_i.
  std::vector<double> Point() const;

 private:
  bool Supports(size_t row) const;
  // Adds the row with the multiplier given. False if it depends on the others beyond rounding.
  bool Append(const RowMultiplier& one);
  void Drop(size_t k);
  // Moves the multipliers to the minimum over the support.
  Outcome Settle();
  // From the multipliers to their minimum, which may have negative ones.
  std::vector<double> Change() const;
  // How many times the change leads to the shortest combination on its line, at least 1: where rows
  // nearly cancel, what is added to the diagonal shortens it.
  double Stretch(std::span<const double> change) const;

  const SignedRows& rows_;
  const size_t max_support_;
  AnalysisMonitor& monitor_;
  const double ridge_;
  std::vector<RowMultiplier> support_;
  // Of z_i . z_j + ridge [i = j] over the support.
  Cholesky factor_;
  // columns() zeros, between calls of Append.
  std::vector<double> scratch_;
};

}  // namespace perceptrond
