// Analyses of sets small enough to be solved by hand, and of sets at the edges.
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "tests/core/convergence/separation_checks.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::Examples;
using testing::ExpectCertified;
using testing::ExpectSolved;
using testing::GoOn;
using testing::Point;
using testing::RowsOf;

// The margin that was worked out lies between the bounds.
void ExpectMargin(const Analysis& analysis, double margin) {
  EXPECT_LE(analysis.margin_floor, margin * (1 + 1e-15));
  EXPECT_GE(analysis.margin_ceiling, margin * (1 - 1e-15));
}

const Examples kLine = {Point({1}, 1), Point({2}, 1), Point({3}, -1), Point({4}, -1)};
const Examples kXor = {Point({-1, -1}, 1), Point({1, 1}, 1), Point({-1, 1}, -1),
                       Point({1, -1}, -1)};

Examples Gate(int at00, int at01, int at10, int at11) {
  return {Point({0, 0}, at00), Point({0, 1}, at01), Point({1, 0}, at10), Point({1, 1}, at11)};
}

TEST(Worked, OneDimensionHasTheMarginOfItsTwoInnerPoints) {
  // w = (-2, 5): 1 at x = 2 and at x = 3.
  const Analysis analysis = AnalyzeAll(kLine, 1);
  ExpectSolved(kLine, 1, analysis);
  ExpectMargin(analysis, 1 / std::sqrt(29.0));
  EXPECT_NEAR(analysis.margin_floor, 0.18569, 1e-5);
  EXPECT_DOUBLE_EQ(analysis.radius, std::sqrt(17.0));
  EXPECT_NEAR(std::pow(analysis.radius / analysis.margin_floor, 2), 493.0, 0.05);
  ASSERT_EQ(analysis.support.size(), 2U);
  EXPECT_EQ(analysis.support[0].example, 1U);
  EXPECT_EQ(analysis.support[1].example, 2U);
  ASSERT_EQ(analysis.separator->vectors[0].weights.size(), 1U);
  EXPECT_NEAR(analysis.separator->vectors[0].weights[0].weight, -2 / std::sqrt(29.0), 1e-6);
  EXPECT_NEAR(analysis.separator->vectors[0].bias_weight, 5 / std::sqrt(29.0), 1e-6);
}

TEST(Worked, AColumnOfOnesIsTheOffset) {
  const Examples augmented = {Point({1, 1}, 1), Point({2, 1}, 1), Point({3, 1}, -1),
                              Point({4, 1}, -1)};
  const Analysis analysis = AnalyzeAll(augmented, 0);
  ExpectSolved(augmented, 0, analysis);
  ExpectMargin(analysis, 1 / std::sqrt(29.0));
  EXPECT_EQ(analysis.separator->vectors[0].bias_weight, 0);
}

TEST(Worked, OneDimensionThroughTheOriginIsNotSeparable) {
  ExpectCertified(kLine, 0, AnalyzeAll(kLine, 0));
}

TEST(Worked, GatesHaveTheMarginsWorkedOutByHand) {
  // AND: w = (2, 2, -3). OR: (2, 2, -1). NAND: minus AND's. NOT: (-2, 1).
  const Examples gate_and = Gate(-1, -1, -1, 1);
  const Examples gate_or = Gate(-1, 1, 1, 1);
  const Examples gate_nand = Gate(1, 1, 1, -1);
  const Examples gate_not = {Point({0}, 1), Point({1}, -1)};
  for (const auto& [gate, squared] :
       {std::pair{gate_and, 17.0}, {gate_or, 9.0}, {gate_nand, 17.0}, {gate_not, 5.0}}) {
    const Analysis analysis = AnalyzeAll(gate, 1);
    ExpectSolved(gate, 1, analysis);
    ExpectMargin(analysis, 1 / std::sqrt(squared));
  }
}

TEST(Worked, XorIsNotSeparableAndAllFourPointsAreNeededToShowIt) {
  for (const double b : {0.0, 1.0, 0.1}) {
    const Analysis analysis = AnalyzeAll(kXor, b);
    ExpectCertified(kXor, b, analysis);
    EXPECT_EQ(analysis.end, AnalysisEnd::kCertified);
  }
  const Analysis analysis = AnalyzeAll(kXor, 1);
  ASSERT_EQ(analysis.certificate.size(), 4U);
  for (const CertificateEntry& entry : analysis.certificate) EXPECT_EQ(entry.multiplier, "1");
}

TEST(Worked, XorWithTheProductIsSeparable) {
  const Examples examples = {Point({-1, -1, 1}, 1), Point({1, 1, 1}, 1), Point({-1, 1, -1}, -1),
                             Point({1, -1, -1}, -1)};
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectSolved(examples, 1, analysis);
  ExpectMargin(analysis, 1);
}

TEST(Worked, ALargeOffsetValueCostsTheOffsetNothing) {
  // Then it is the hard-margin SVM, which does not count the offset in ||w||: the margin is the
  // distance to the plane x = 101.
  const Examples examples = {Point({100}, -1), Point({102}, 1)};
  const Analysis with_1 = AnalyzeAll(examples, 1);
  const Analysis with_1e5 = AnalyzeAll(examples, 1e5);
  ExpectSolved(examples, 1e5, with_1e5);
  EXPECT_LT(with_1.margin_ceiling, 0.01);
  EXPECT_NEAR(with_1e5.margin_floor, 1, 2e-6);
}

TEST(Worked, AMarginFarBelowTheRadiusIsFoundToTheSameGap) {
  // R / gamma is about 2.6e5: LIBSVM's float32 sees one and the same point.
  const float next = 1 + 0x1p-16F;
  const Examples examples = {Point({1}, 1), Point({next}, -1)};
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectSolved(examples, 1, analysis);
  ExpectMargin(analysis, 1 / std::hypot(0x1p17, 0x1p17 + 1));
}

TEST(Edge, NoRowsSayNothing) {
  const Analysis analysis = AnalyzeAll({}, 1);
  EXPECT_EQ(analysis.separability, Separability::kUndecided);
  EXPECT_EQ(analysis.end, AnalysisEnd::kNoRows);
  EXPECT_EQ(analysis.margin_floor, 0);
  EXPECT_EQ(analysis.margin_ceiling, std::numeric_limits<double>::infinity());
}

TEST(Edge, OneRowHasItsLengthForMargin) {
  const Examples examples = {Point({3, 4}, -1)};
  const Analysis analysis = AnalyzeAll(examples, 0);
  ExpectSolved(examples, 0, analysis);
  ExpectMargin(analysis, 5);
}

TEST(Edge, OneClassIsSeparableByTheOffsetAlone) {
  Examples examples = {Point({1, 0}, 1), Point({-1, 0}, 1), Point({0, 0}, 1)};
  for (const int label : {1, -1}) {
    for (auto& example : examples) example.label = label;
    const Analysis analysis = AnalyzeAll(examples, 1);
    ExpectSolved(examples, 1, analysis);
    ExpectMargin(analysis, 1);
    // Through the origin two of them lie on opposite sides.
    ExpectCertified(examples, 0, AnalyzeAll(examples, 0));
  }
}

TEST(Edge, AZeroRowIsNeverSeparableThroughTheOrigin) {
  for (const Examples& examples :
       {Examples{Point({}, 1)}, Examples{Point({1, 2}, 1), Point({0, 0}, -1), Point({2, 1}, 1)}}) {
    const Analysis analysis = AnalyzeAll(examples, 0);
    ExpectCertified(examples, 0, analysis);
    ASSERT_EQ(analysis.certificate.size(), 1U);
    EXPECT_EQ(analysis.certificate[0].multiplier, "1");
    EXPECT_EQ(AnalyzeAll(examples, 1).separability, Separability::kSeparable);
  }
}

TEST(Edge, ContradictoryDuplicatesAreNotSeparable) {
  Examples examples;
  for (int i = 0; i < 2000; ++i)
    examples.push_back(Point({static_cast<float>(i), 1}, i < 1000 ? -1 : 1));
  examples.push_back(Point({1900, 1}, -1));
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectCertified(examples, 1, analysis);
}

TEST(Edge, ThePairAloneIsFoundWhereNothingElseContradicts) {
  // Each row has a feature of its own, so that any set without the pair is separable.
  Examples examples;
  for (uint32_t i = 0; i < 600; ++i) examples.push_back({i % 2 == 0 ? 1 : -1, {i}, {0.7F}});
  examples.push_back({-1, {400}, {0.7F}});
  const Analysis analysis = AnalyzeAll(examples, 0);
  ExpectCertified(examples, 0, analysis);
  ASSERT_EQ(analysis.certificate.size(), 2U);
  EXPECT_EQ(analysis.certificate[0].example, 400U);
  EXPECT_EQ(analysis.certificate[1].example, 600U);
}

TEST(Edge, MultipliersAreExactWhereRowsDifferInScale) {
  const Examples examples = {Point({1, 3}, 1), Point({0x1p-20F, 0x3p-20F}, -1)};
  const Analysis analysis = AnalyzeAll(examples, 0);
  ExpectCertified(examples, 0, analysis);
  EXPECT_EQ(analysis.certificate[0].multiplier, "1");
  EXPECT_EQ(analysis.certificate[1].multiplier, "1048576");
}

TEST(Edge, DuplicatesChangeNoMargin) {
  Examples examples = kLine;
  for (int i = 0; i < 50; ++i) examples.insert(examples.end(), kLine.begin(), kLine.end());
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectSolved(examples, 1, analysis);
  ExpectMargin(analysis, 1 / std::sqrt(29.0));
}

TEST(Edge, FormsOfARowAreEqual) {
  const float dense[] = {0, 1, 0, 1};
  const uint32_t indices[] = {1, 3};
  const float ones[] = {1, 1};
  const float other[] = {1, 0, 0, 1};
  for (const Row& row : {Row{nullptr, dense, 4}, Row{indices, ones, 2}, Row{indices, nullptr, 2}}) {
    const std::vector<LabelledRow> rows = {{row, 1}, {Row{nullptr, other, 4}, -1}};
    const Analysis analysis = Analyze(rows, AnalysisOptions(), GoOn);
    // Half the distance of the two z, whose common feature and offset cancel.
    EXPECT_EQ(analysis.separability, Separability::kSeparable);
    ExpectMargin(analysis, std::sqrt(0.5));
    ASSERT_EQ(analysis.separator->vectors[0].weights.size(), 2U);
    EXPECT_EQ(analysis.separator->vectors[0].weights[0].index, 0U);
    EXPECT_EQ(analysis.separator->vectors[0].weights[1].index, 1U);
  }
}

TEST(Edge, IndicesMayBeHugeAndFarApart) {
  const Examples examples = {{1, {7, (1U << 28) - 1}, {1, 1}}, {-1, {7, 1000000}, {1, 1}}};
  const Analysis analysis = AnalyzeAll(examples, 1);
  ExpectSolved(examples, 1, analysis);
  EXPECT_EQ(analysis.separator->vectors[0].weights.back().index, (1U << 28) - 1);
}

TEST(Edge, FloatsOfAnySizeAreAnalyzed) {
  for (const float scale : {0x1p-140F, 0x1p-60F, 0x1p60F, 0x1p124F}) {
    Examples examples = kLine;
    for (auto& example : examples)
      example = Point({example.values[0] * scale, scale}, example.label);
    const Analysis analysis = AnalyzeAll(examples, 0);
    ExpectSolved(examples, 0, analysis);
    ExpectMargin(analysis, scale / std::sqrt(29.0));
    Examples inseparable = kXor;
    for (auto& example : inseparable)
      for (float& value : example.values) value *= scale;
    ExpectCertified(inseparable, 0, AnalyzeAll(inseparable, 0));
  }
}

TEST(Edge, EveryEndHasATextOfItsOwn) {
  std::set<std::string> words;
  for (int end = 0; end <= static_cast<int>(AnalysisEnd::kTooManyWeights); ++end)
    words.insert(ToString(static_cast<AnalysisEnd>(end)));
  EXPECT_EQ(words.size(), static_cast<size_t>(AnalysisEnd::kTooManyWeights) + 1);
  EXPECT_EQ(words.count(""), 0U);
}

}  // namespace
}  // namespace perceptrond
