#include "core/convergence/analysis/integer_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

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

namespace {

using Residues = std::vector<uint64_t>;

// a^(p - 2) = 1 / a, by Fermat.
uint64_t Inverse(uint64_t a) {
  uint64_t result = 1;
  for (uint64_t power = kPrime - 2; power > 0; power /= 2) {
    if (power % 2 == 1) result = Product(result, a);
    a = Product(a, a);
  }
  return result;
}

// row -= factor * other, from `begin` on.
void Eliminate(Residues& row, uint64_t factor, const Residues& other, size_t begin) {
  if (factor == 0) return;
  for (size_t k = begin; k < row.size(); ++k)
    row[k] = Residue(row[k] + Wide{kPrime - factor} * other[k]);
}

void Scale(Residues& row, uint64_t factor) {
  for (uint64_t& value : row) value = Product(value, factor);
}

Residues Reduce(const IntegerMatrix::Equation& equation, size_t columns) {
  Residues row(columns);
  for (const auto& [k, value] : equation) row[k] = mpz_fdiv_ui(value.get_mpz_t(), kPrime);
  return row;
}

// Picks equations, and the column that none of them has its pivot in. False: too few.
bool PickEquations(const IntegerMatrix& matrix, SquarePart& part, AnalysisMonitor& monitor) {
  const size_t columns = matrix.columns();
  std::vector<std::pair<size_t, Residues>> pivots;
  std::vector<bool> taken(columns);
  for (size_t e = 0; e < matrix.equations().size() && pivots.size() + 1 < columns; ++e) {
    Residues row = Reduce(matrix.equations()[e], columns);
    for (const auto& [column, pivot] : pivots) Eliminate(row, row[column], pivot, 0);
    if (!monitor.Spend(4 * (1 + pivots.size()) * columns)) return false;
    const auto first = std::find_if(row.begin(), row.end(), [](uint64_t v) { return v != 0; });
    if (first == row.end()) continue;
    const size_t column = first - row.begin();
    Scale(row, Inverse(*first));
    taken[column] = true;
    pivots.emplace_back(column, std::move(row));
    part.equations.push_back(e);
  }
  part.free_column = std::find(taken.begin(), taken.end(), false) - taken.begin();
  return pivots.size() + 1 == columns;
}

// Gauss and Jordan on (A | 1), which is known to be regular. False: the analysis was stopped.
bool Invert(const IntegerMatrix& matrix, SquarePart& part, AnalysisMonitor& monitor) {
  const size_t n = part.equations.size();
  std::vector<Residues> work;
  for (size_t r = 0; r < n; ++r) {
    Residues row = Reduce(matrix.equations()[part.equations[r]], n + 1);
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(part.free_column));
    row.resize(2 * n);
    row[n + r] = 1;
    work.push_back(std::move(row));
  }
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    while (work[pivot][c] == 0) ++pivot;
    std::swap(work[c], work[pivot]);
    Scale(work[c], Inverse(work[c][c]));
    for (size_t r = 0; r < n; ++r)
      if (r != c) Eliminate(work[r], work[r][c], work[c], c);
    if (!monitor.Spend(8 * n * n)) return false;
  }
  for (Residues& row : work)
    part.inverse.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(n), row.end());
  return true;
}

}  // namespace

uint64_t SumOfProducts(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  constexpr size_t kTogether = 32;
  uint64_t sum = 0;
  for (size_t begin = 0; begin < a.size(); begin += kTogether) {
    Wide part = sum;
    const size_t end = std::min(a.size(), begin + kTogether);
    for (size_t k = begin; k < end; ++k) part += Wide{a[k]} * b[k];
    sum = Residue(part);
  }
  return sum;
}

SquarePart FindSquarePart(const IntegerMatrix& matrix, AnalysisMonitor& monitor) {
  SquarePart part;
  if (PickEquations(matrix, part, monitor) && Invert(matrix, part, monitor)) return part;
  return {};
}

}  // namespace perceptrond
