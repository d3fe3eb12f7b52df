#include "core/convergence/analysis/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace perceptrond {
namespace {

constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// At least what a sum of n rounded products may be off by, given the rounded sum of their
// magnitudes. Twice the rule's g(n), with room for the rounding of this bound, of the magnitudes
// and of one more operation with the result.
double SumError(size_t n, double magnitude) {
  const auto terms = static_cast<double>(n + 4);
  return terms * std::numeric_limits<double>::epsilon() * magnitude + 2 * terms * kTiny;
}

double Up(double x) { return x * (1 + 0x1p-50) + kTiny; }
// Of a result that lost digits by underflow nothing is claimed.
double Down(double x) { return x >= std::numeric_limits<double>::min() ? x * (1 - 0x1p-50) : 0; }

// At least ||v||.
double NormAbove(std::span<const double> v) {
  double squared = 0;
  for (const double x : v) squared += x * x;
  return Up(std::sqrt(squared + SumError(v.size(), squared)));
}

}  // namespace

Margins MeasureMargins(const SignedRows& rows, std::span<const double> w,
                       CancellationToken& cancellation) {
  Margins margins;
  margins.scores.reserve(rows.rows());
  double least = kUnbounded;
  for (size_t i = 0; i < rows.rows(); ++i) {
    const auto at = rows.indices(i);
    const auto x = rows.values(i);
    double score = 0;
    double magnitude = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      const double term = x[k] * w[at[k]];
      score += term;
      magnitude += std::abs(term);
    }
    margins.scores.push_back(score);
    least = std::min(least, score - SumError(at.size(), magnitude));
    if (!cancellation.Spend(2 * at.size() + 1)) return margins;
  }
  const double norm = NormAbove(w);
  if (least > 0 && least < kUnbounded && norm < kUnbounded) margins.floor = Down(least / norm);
  return margins;
}

double MarginCeiling(const SignedRows& rows, std::span<const SupportVector> support) {
  std::vector<double> sum(rows.columns());
  std::vector<double> magnitude(rows.columns());
  double total = 0;
  for (const SupportVector& one : support) {
    const auto at = rows.indices(one.row);
    const auto x = rows.values(one.row);
    for (size_t k = 0; k < at.size(); ++k) {
      sum[at[k]] += one.multiplier * x[k];
      magnitude[at[k]] += std::abs(one.multiplier * x[k]);
    }
    total += one.multiplier;
  }
  for (size_t j = 0; j < sum.size(); ++j)
    sum[j] = std::abs(sum[j]) + SumError(support.size(), magnitude[j]);
  const double total_below = Down(total - SumError(support.size(), total));
  const double ceiling = Up(NormAbove(sum) / total_below);
  return total_below > 0 && std::isfinite(ceiling) ? ceiling : kUnbounded;
}

}  // namespace perceptrond
