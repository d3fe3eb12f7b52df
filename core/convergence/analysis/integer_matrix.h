// Some rows of an analysis as columns of exact integers, and their linear algebra modulo a prime:
// the start of the exact solution.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {

// M, whose column k is z_i 2^-e_k for the k-th chosen row i, e_k the largest that makes all of it
// integers. Its equations are the columns of the rows that have an entry. Immutable: any thread may
// read it.
class IntegerMatrix {
 public:
  using Equation = std::vector<std::pair<uint32_t, mpz_class>>;

  IntegerMatrix(const SignedRows& rows, std::span<const size_t> chosen);

  size_t columns() const { return exponents_.size(); }
  // Each a row of M: its entries that are not 0, by ascending column.
  const std::vector<Equation>& equations() const { return equations_; }
  // Digits in base 2 that no minor of M exceeds: sum of log2 ||column|| (Hadamard 1893).
  double determinant_bits() const { return determinant_bits_; }

  // Whether M x is exactly 0.
  bool Annihilates(std::span<const mpz_class> x) const;
  // From x with M x = 0 to integers without a common divisor whose combination of the z_i is 0.
  std::vector<mpz_class> Unscale(std::span<const mpz_class> x) const;

 private:
  std::vector<Equation> equations_;
  std::vector<int> exponents_;
  double determinant_bits_ = 0;
};

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
SquarePart FindSquarePart(const IntegerMatrix& matrix, AnalysisMonitor& monitor);

}  // namespace perceptrond
