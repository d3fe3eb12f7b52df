// Some rows of an analysis as columns of exact integers.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

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

}  // namespace perceptrond
