// A Cholesky factor whose rows can be added and removed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace perceptrond {

// L with L L' = A, A symmetric and positive definite, n x n. Not thread-safe.
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

}  // namespace perceptrond
