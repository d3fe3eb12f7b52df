#include "core/convergence/analysis/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/convergence/analysis/analysis.h"

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

// x . w over one block, and the sum of its terms' magnitudes.
struct BlockScore {
  double score = 0;
  double magnitude = 0;
};

BlockScore ScoreBlock(const SignedRows& rows, size_t example, std::span<const double> block) {
  const auto at = rows.indices(example);
  const auto x = rows.values(example);
  BlockScore sum;
  for (size_t k = 0; k < at.size(); ++k) {
    const double term = x[k] * block[at[k]];
    sum.score += term;
    sum.magnitude += std::abs(term);
  }
  return sum;
}

// The lowest score of the example's rows, and the lowest that exact arithmetic might give.
struct LowestScore {
  RowScore row{0, kUnbounded};
  double below = kUnbounded;
};

LowestScore FindLowest(const SignedRows& rows, size_t example, std::span<const BlockScore> scores) {
  const size_t terms = rows.indices(example).size();
  const size_t first = example * rows.rows_per_example();
  const int32_t label = rows.label(example);
  if (rows.blocks() == 1) {
    const double score = label > 0 ? scores[0].score : -scores[0].score;
    return {{first, score}, score - SumError(terms, scores[0].magnitude)};
  }
  const BlockScore& own = scores[static_cast<size_t>(label)];
  LowestScore lowest;
  for (size_t row = first; row < first + rows.rows_per_example(); ++row) {
    const BlockScore& other = scores[static_cast<size_t>(rows.rival(row))];
    const double score = own.score - other.score;
    if (score < lowest.row.score) lowest.row = {row, score};
    lowest.below =
        std::min(lowest.below, score - SumError(2 * terms, own.magnitude + other.magnitude));
  }
  return lowest;
}

// At least ||v||.
double NormAbove(std::span<const double> v) {
  double squared = 0;
  for (const double x : v) squared += x * x;
  return Up(std::sqrt(squared + SumError(v.size(), squared)));
}

}  // namespace

Margins MeasureMargins(const SignedRows& rows, std::span<const double> w,
                       AnalysisMonitor& monitor) {
  Margins margins;
  margins.lowest.reserve(rows.examples());
  std::vector<BlockScore> scores(rows.blocks());
  double least = kUnbounded;
  for (size_t i = 0; i < rows.examples(); ++i) {
    for (size_t k = 0; k < rows.blocks(); ++k)
      scores[k] = ScoreBlock(rows, i, w.subspan(k * rows.width(), rows.width()));
    const LowestScore lowest = FindLowest(rows, i, scores);
    margins.lowest.push_back(lowest.row);
    least = std::min(least, lowest.below);
    if (!monitor.Spend(2 * rows.blocks() * (rows.indices(i).size() + 1))) return margins;
  }
  const double norm = NormAbove(w);
  if (least > 0 && least < kUnbounded && norm < kUnbounded) margins.floor = Down(least / norm);
  return margins;
}

double MarginCeiling(const SignedRows& rows, std::span<const RowMultiplier> support) {
  std::vector<double> sum(rows.columns());
  std::vector<double> magnitude(rows.columns());
  double total = 0;
  for (const RowMultiplier& one : support) {
    rows.ForEach(one.row, [&](size_t column, double value) {
      sum[column] += one.multiplier * value;
      magnitude[column] += std::abs(one.multiplier * value);
    });
    total += one.multiplier;
  }
  for (size_t j = 0; j < sum.size(); ++j)
    sum[j] = std::abs(sum[j]) + SumError(support.size(), magnitude[j]);
  const double total_below = Down(total - SumError(support.size(), total));
  const double ceiling = Up(NormAbove(sum) / total_below);
  return total_below > 0 && std::isfinite(ceiling) ? ceiling : kUnbounded;
}

std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w) {
  double squared = 0;
  for (const double x : w) squared += x * x;
  std::vector<double> rounded;
  rounded.reserve(w.size());
  for (const double x : w) rounded.push_back(static_cast<float>(x / std::sqrt(squared)));
  // A cancelled analysis still returns what it has.
  const auto go_on = [](const AnalysisProgress&) { return true; };
  AnalysisMonitor uncancelled(go_on);
  const double floor = MeasureMargins(rows, rounded, uncancelled).floor;
  if (floor <= 0) return std::nullopt;
  return Separator{ToWeightVectors(rows, rounded), floor};
}

std::vector<WeightVector> ToWeightVectors(const SignedRows& rows, std::span<const double> w) {
  std::vector<WeightVector> vectors(rows.blocks());
  for (size_t k = 0; k < vectors.size(); ++k) {
    const std::span<const double> block = w.subspan(k * rows.width(), rows.width());
    for (size_t j = 0; j < rows.features().size(); ++j) {
      if (block[j] != 0)
        vectors[k].weights.push_back({rows.features()[j], static_cast<float>(block[j])});
    }
    if (rows.has_bias()) vectors[k].bias_weight = static_cast<float>(block.back());
  }
  return vectors;
}

}  // namespace perceptrond
