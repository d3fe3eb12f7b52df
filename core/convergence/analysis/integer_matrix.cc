#include "core/convergence/analysis/integer_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace perceptrond {
namespace {

// value = mantissa 2^exponent, the mantissa odd.
struct Dyadic {
  explicit Dyadic(double value) {
    mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
    exponent -= 53;
    while (mantissa % 2 == 0) {
      mantissa /= 2;
      ++exponent;
    }
  }

  int64_t mantissa;
  int exponent;
};

mpz_class Shifted(int64_t mantissa, int shift) {
  mpz_class value(static_cast<long>(mantissa));
  return value << static_cast<mp_bitcnt_t>(shift);
}

}  // namespace

IntegerMatrix::IntegerMatrix(const SignedRows& rows, std::span<const size_t> chosen) {
  std::map<size_t, Equation> equations;
  for (uint32_t k = 0; k < chosen.size(); ++k) {
    std::vector<size_t> at;
    std::vector<Dyadic> dyadics;
    rows.ForEach(chosen[k], [&](size_t column, double value) {
      at.push_back(column);
      dyadics.emplace_back(value);
    });
    int least = std::numeric_limits<int>::max();
    for (const Dyadic& one : dyadics) least = std::min(least, one.exponent);
    exponents_.push_back(dyadics.empty() ? 0 : least);
    double bits = 1;
    for (size_t j = 0; j < at.size(); ++j) {
      mpz_class value = Shifted(dyadics[j].mantissa, dyadics[j].exponent - least);
      bits = std::max(bits, static_cast<double>(mpz_sizeinbase(value.get_mpz_t(), 2)));
      equations[at[j]].emplace_back(k, std::move(value));
    }
    determinant_bits_ += bits + 0.5 * std::log2(1 + static_cast<double>(at.size()));
  }
  for (auto& [column, equation] : equations) equations_.push_back(std::move(equation));
}

bool IntegerMatrix::Annihilates(std::span<const mpz_class> x) const {
  return std::all_of(equations_.begin(), equations_.end(), [&](const Equation& equation) {
    mpz_class sum = 0;
    for (const auto& [k, value] : equation) sum += value * x[k];
    return sum == 0;
  });
}

std::vector<mpz_class> IntegerMatrix::Unscale(std::span<const mpz_class> x) const {
  const int most = *std::max_element(exponents_.begin(), exponents_.end());
  std::vector<mpz_class> result;
  mpz_class divisor = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    result.push_back(x[k] << static_cast<mp_bitcnt_t>(most - exponents_[k]));
    divisor = gcd(divisor, result.back());
  }
  if (divisor != 0)
    for (mpz_class& one : result) one /= divisor;
  return result;
}

}  // namespace perceptrond
