// Claims of an analysis, checked in rational arithmetic that shares nothing with the product's.
#pragma once

#include <gmpxx.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "gtest/gtest.h"
#include "tests/support/svmlight.h"

namespace perceptrond::testing {

using Examples = std::vector<SvmExample>;

inline bool GoOn(const AnalysisProgress&) { return true; }

// Views of the examples, which must outlive them.
inline std::vector<LabelledRow> RowsOf(const Examples& examples) {
  std::vector<LabelledRow> rows;
  for (const SvmExample& one : examples) {
    const uint32_t* indices = one.indices.empty() ? kNoIndices : one.indices.data();
    rows.push_back({Row{indices, one.values.data(), one.indices.size()}, one.label});
  }
  return rows;
}

inline Analysis AnalyzeWith(const Examples& examples, const AnalysisOptions& options) {
  return Analyze(RowsOf(examples), options, GoOn);
}
// Examples of two labels, or of K classes, with the constant input b, are to be separated.
struct Problem {
  // Implicit: two labels.
  Problem(double bias_input, uint32_t number_of_classes = 0)  // NOLINT
      : b(bias_input), classes(number_of_classes) {}

  double b;
  uint32_t classes;
};

inline Analysis AnalyzeAll(const Examples& examples, const Problem& problem) {
  AnalysisOptions options;
  options.bias_input = problem.b;
  options.classes = problem.classes;
  return AnalyzeWith(examples, options);
}

// An example of features 0, 1, ...
inline SvmExample Point(const std::vector<float>& values, int label) {
  SvmExample example;
  example.label = label;
  for (uint32_t i = 0; i < values.size(); ++i) example.indices.push_back(i);
  example.values = values;
  return example;
}

// Labels at random: of more than twice as many examples as dimensions nothing separates them.
inline Examples Noise(uint32_t seed, size_t count, uint32_t dimension) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Examples examples;
  for (size_t i = 0; i < count; ++i) {
    std::vector<float> values(dimension);
    for (float& value : values) value = normal(random);
    examples.push_back(Point(values, random() % 2 == 0 ? 1 : -1));
  }
  return examples;
}

// Exact columns: class (0 with two labels) and feature, value. The bias is after any feature.
using ExactColumn = std::pair<int, uint64_t>;
using ExactVector = std::map<ExactColumn, mpq_class>;
constexpr uint64_t kBiasColumn = uint64_t{1} << 40;

// sum += scale (x, b) in the block of one class.
inline void AddBlockExactly(const SvmExample& example, double b, int block, const mpq_class& scale,
                            ExactVector& sum) {
  for (size_t i = 0; i < example.indices.size(); ++i)
    sum[{block, example.indices[i]}] += scale * mpq_class(example.values[i]);
  sum[{block, kBiasColumn}] += scale * mpq_class(b);
}

// sum += scale z, where z is the example's row for this other class.
inline void AddExactly(const SvmExample& example, int rival, const Problem& problem,
                       const mpq_class& scale, ExactVector& sum) {
  if (problem.classes == 0) {
    ASSERT_EQ(rival, -1);
    return AddBlockExactly(example, problem.b, 0, scale * example.label, sum);
  }
  ASSERT_NE(rival, example.label);
  ASSERT_GE(rival, 0);
  ASSERT_LT(rival, static_cast<int>(problem.classes));
  AddBlockExactly(example, problem.b, example.label, scale, sum);
  AddBlockExactly(example, problem.b, rival, -scale, sum);
}

inline mpq_class ScoreExactly(const SvmExample& example, double b, int block,
                              const ExactVector& w) {
  const auto weight = [&](uint64_t feature) {
    const auto at = w.find({block, feature});
    return at == w.end() ? mpq_class(0) : at->second;
  };
  mpq_class score = weight(kBiasColumn) * b;
  for (size_t i = 0; i < example.indices.size(); ++i)
    score += weight(example.indices[i]) * example.values[i];
  return score;
}

// The least of w . z over the example's rows.
inline mpq_class MarginExactly(const SvmExample& example, const Problem& problem,
                               const ExactVector& w) {
  if (problem.classes == 0) return example.label * ScoreExactly(example, problem.b, 0, w);
  const mpq_class own = ScoreExactly(example, problem.b, example.label, w);
  std::optional<mpq_class> least;
  for (int other = 0; other < static_cast<int>(problem.classes); ++other) {
    if (other == example.label) continue;
    const mpq_class margin = own - ScoreExactly(example, problem.b, other, w);
    if (!least || margin < *least) least = margin;
  }
  return *least;
}

inline mpq_class SquaredNormOf(const ExactVector& v) {
  mpq_class sum = 0;
  for (const auto& [column, value] : v) sum += value * value;
  return sum;
}

// The certificate's multipliers are positive, and what they combine to is zero.
inline void ExpectCertified(const Examples& examples, const Problem& problem,
                            const Analysis& analysis) {
  ASSERT_EQ(analysis.separability, Separability::kNotSeparable) << ToString(analysis.end);
  ASSERT_FALSE(analysis.certificate.empty());
  ExactVector sum;
  for (const CertificateEntry& entry : analysis.certificate) {
    const mpq_class multiplier(entry.multiplier);
    ASSERT_GT(multiplier, 0);
    AddExactly(examples.at(entry.example), entry.rival, problem, multiplier, sum);
  }
  EXPECT_EQ(SquaredNormOf(sum), 0);
  EXPECT_EQ(analysis.margin_floor, 0);
  EXPECT_EQ(analysis.margin_ceiling, 0);
  EXPECT_TRUE(std::isinf(analysis.update_bound));
  EXPECT_TRUE(analysis.support.empty());
  EXPECT_FALSE(analysis.separator.has_value());
}

// The float32 separator has the margin it claims, on every example.
inline void ExpectSeparates(const Examples& examples, const Problem& problem,
                            const Separator& separator) {
  ASSERT_EQ(separator.vectors.size(), std::max(problem.classes, 1U));
  ExactVector w;
  for (int k = 0; k < static_cast<int>(separator.vectors.size()); ++k) {
    for (const FeatureWeight& one : separator.vectors[k].weights) w[{k, one.index}] = one.weight;
    w[{k, kBiasColumn}] = separator.vectors[k].bias_weight;
  }
  const mpq_class floor(separator.margin_floor);
  ASSERT_GT(floor, 0);
  const mpq_class needed = floor * floor * SquaredNormOf(w);
  for (const SvmExample& example : examples) {
    const mpq_class margin = MarginExactly(example, problem, w);
    ASSERT_GT(margin, 0);
    ASSERT_GE(margin * margin, needed);
  }
}

// The support's combination is as short as the ceiling says.
inline void ExpectCeiling(const Examples& examples, const Problem& problem,
                          const Analysis& analysis) {
  ASSERT_FALSE(analysis.support.empty());
  ExactVector sum;
  mpq_class total = 0;
  for (const SupportVector& one : analysis.support) {
    ASSERT_GT(one.multiplier, 0);
    AddExactly(examples.at(one.example), one.rival, problem, mpq_class(one.multiplier), sum);
    total += mpq_class(one.multiplier);
  }
  const mpq_class ceiling(analysis.margin_ceiling);
  EXPECT_LE(SquaredNormOf(sum), ceiling * ceiling * total * total);
}

// Separable, to the gap asked for, with every claim true.
inline void ExpectSolved(const Examples& examples, const Problem& problem, const Analysis& analysis,
                         double relative_gap = 1e-6) {
  ASSERT_EQ(analysis.separability, Separability::kSeparable) << ToString(analysis.end);
  EXPECT_EQ(analysis.end, AnalysisEnd::kGapReached);
  EXPECT_LE(analysis.margin_floor, analysis.margin_ceiling);
  EXPECT_LE(analysis.relative_gap(), relative_gap);
  const double ratio = analysis.radius / analysis.margin_floor;
  EXPECT_DOUBLE_EQ(analysis.update_bound, (problem.classes == 0 ? 1 : 2) * ratio * ratio);
  EXPECT_TRUE(analysis.certificate.empty());
  ASSERT_TRUE(analysis.separator.has_value());
  EXPECT_LE(analysis.separator->margin_floor, analysis.margin_floor);
  ExpectSeparates(examples, problem, *analysis.separator);
  ExpectCeiling(examples, problem, analysis);
}

// Separable or not, to whatever gap, with every claim true.
inline void ExpectDecided(const Examples& examples, const Problem& problem,
                          const Analysis& analysis) {
  if (analysis.separability != Separability::kSeparable)
    return ExpectCertified(examples, problem, analysis);
  EXPECT_LE(analysis.margin_floor, analysis.margin_ceiling);
  ASSERT_TRUE(analysis.separator.has_value());
  ExpectSeparates(examples, problem, *analysis.separator);
  ExpectCeiling(examples, problem, analysis);
}

}  // namespace perceptrond::testing
