// Claims of an analysis, checked in rational arithmetic that shares nothing with the product's.
#pragma once

#include <gmpxx.h>

#include <map>
#include <random>
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

inline Analysis AnalyzeAll(const Examples& examples, const AnalysisOptions& options) {
  return Analyze(RowsOf(examples), options, GoOn);
}
inline Analysis AnalyzeAll(const Examples& examples, double offset_value) {
  AnalysisOptions options;
  options.offset_value = offset_value;
  return AnalyzeAll(examples, options);
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

// Exact columns: feature, value. The bias has a column far after any feature's.
using ExactVector = std::map<uint64_t, mpq_class>;
constexpr uint64_t kOffsetColumn = uint64_t{1} << 40;

inline void AddExactly(const SvmExample& example, double b, const mpq_class& scale,
                       ExactVector& sum) {
  const mpq_class factor = scale * example.label;
  for (size_t i = 0; i < example.indices.size(); ++i)
    sum[example.indices[i]] += factor * mpq_class(example.values[i]);
  sum[kOffsetColumn] += factor * mpq_class(b);
}

inline mpq_class SquaredNormOf(const ExactVector& v) {
  mpq_class sum = 0;
  for (const auto& [column, value] : v) sum += value * value;
  return sum;
}

// The certificate's multipliers are positive, and what they combine to is zero.
inline void ExpectCertified(const Examples& examples, double b, const Analysis& analysis) {
  ASSERT_EQ(analysis.separability, Separability::kNotSeparable) << EndInWords(analysis.end);
  ASSERT_FALSE(analysis.certificate.empty());
  ExactVector sum;
  for (const CertificateEntry& entry : analysis.certificate) {
    const mpq_class multiplier(entry.multiplier);
    ASSERT_GT(multiplier, 0);
    AddExactly(examples.at(entry.row), b, multiplier, sum);
  }
  EXPECT_EQ(SquaredNormOf(sum), 0);
  EXPECT_EQ(analysis.margin_floor, 0);
  EXPECT_EQ(analysis.margin_ceiling, 0);
  EXPECT_TRUE(analysis.support.empty());
  EXPECT_FALSE(analysis.separator.has_value());
}

// The float32 separator has the margin it claims, on every example.
inline void ExpectSeparates(const Examples& examples, double b, const Separator& separator) {
  ExactVector w;
  for (const FeatureWeight& one : separator.weights) w[one.index] = one.weight;
  w[kOffsetColumn] = separator.offset_weight;
  const mpq_class floor(separator.margin_floor);
  ASSERT_GT(floor, 0);
  const mpq_class needed = floor * floor * SquaredNormOf(w);
  for (const SvmExample& example : examples) {
    mpq_class score = w[kOffsetColumn] * b;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      const auto at = w.find(example.indices[i]);
      if (at != w.end()) score += at->second * example.values[i];
    }
    score *= example.label;
    ASSERT_GT(score, 0);
    ASSERT_GE(score * score, needed);
  }
}

// The support's combination is as short as the ceiling says.
inline void ExpectCeiling(const Examples& examples, double b, const Analysis& analysis) {
  ASSERT_FALSE(analysis.support.empty());
  ExactVector sum;
  mpq_class total = 0;
  for (const SupportVector& one : analysis.support) {
    ASSERT_GT(one.multiplier, 0);
    AddExactly(examples.at(one.row), b, mpq_class(one.multiplier), sum);
    total += mpq_class(one.multiplier);
  }
  const mpq_class ceiling(analysis.margin_ceiling);
  EXPECT_LE(SquaredNormOf(sum), ceiling * ceiling * total * total);
}

// Separable, to the gap asked for, with every claim true.
inline void ExpectSolved(const Examples& examples, double b, const Analysis& analysis,
                         double relative_gap = 1e-6) {
  ASSERT_EQ(analysis.separability, Separability::kSeparable) << EndInWords(analysis.end);
  EXPECT_EQ(analysis.end, AnalysisEnd::kGapReached);
  EXPECT_LE(analysis.margin_floor, analysis.margin_ceiling);
  EXPECT_LE(analysis.relative_gap(), relative_gap);
  EXPECT_TRUE(analysis.certificate.empty());
  ASSERT_TRUE(analysis.separator.has_value());
  EXPECT_LE(analysis.separator->margin_floor, analysis.margin_floor);
  ExpectSeparates(examples, b, *analysis.separator);
  ExpectCeiling(examples, b, analysis);
}

}  // namespace perceptrond::testing
