// Linear algebra modulo a prime: where the exact solution starts from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/integer_matrix.h"

namespace perceptrond {

// p = 2^31 - 1: products of two residues fit 64 bits.
inline constexpr uint64_t kPrime = 2147483647;

// The part of a matrix of rank columns - 1 (modulo p) that determines its null vector.
struct SquarePart {
  // columns - 1 equations, independent modulo p.
  std::vector<size_t> equations;
  // The column left out; the others in their order make the square.
  size_t free_column = 0;
  // The square's inverse modulo p, row by row.
  std::vector<std::vector<uint64_t>> inverse;
};

// Empty equations for a matrix of more than one column: the rank is less, or the checkpoint ended
// it. O(columns^2 equations + columns^3).
SquarePart FindSquarePart(const IntegerMatrix& matrix, CancellationToken& cancellation);

}  // namespace perceptrond
