// Linear algebra modulo a prime, the start of the exact solution.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/integer_matrix.h"

namespace perceptrond {

// p = 2^61 - 1: x mod p takes shifts and additions, and 32 products of residues fit 128 bits.
inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

using Wide = unsigned __int128;

// x mod p. 2^61 = 1 mod p: what is above that bit is added below it.
constexpr uint64_t Residue(Wide x) {
  x = (x & kPrime) + (x >> 61);
  x = (x & kPrime) + (x >> 61);
  const auto folded = static_cast<uint64_t>(x);
  return folded >= kPrime ? folded - kPrime : folded;
}
constexpr uint64_t Product(uint64_t a, uint64_t b) { return Residue(Wide{a} * b); }
// sum a_k b_k mod p, of residues.
uint64_t SumOfProducts(std::span<const uint64_t> a, std::span<const uint64_t> b);

// The part of a matrix of rank columns - 1 (modulo p) that determines its null vector.
struct SquarePart {
  // columns - 1 equations, independent modulo p.
  std::vector<size_t> equations;
  // The column left out; the others in their order make the square.
  size_t free_column = 0;
  // The square's inverse modulo p, row by row.
  std::vector<std::vector<uint64_t>> inverse;
};

// Empty equations for a matrix of more than one column: the rank is less, or the token was
// cancelled. O(columns^2 equations + columns^3).
SquarePart FindSquarePart(const IntegerMatrix& matrix, CancellationToken& cancellation);

}  // namespace perceptrond
