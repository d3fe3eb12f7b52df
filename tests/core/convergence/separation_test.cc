// Analyses of sets small enough to be solved by hand, of sets at the edges, and of real ones: whether
// they are separable, with which margin, or by how many examples they are not. How an analysis is
// limited, cancelled and watched.
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/class_examples.h"
#include "tests/support/separable.h"
#include "tests/support/shared_data.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::AnalyzeWith;
using testing::Examples;
using testing::ExpectCeiling;
using testing::ExpectCertified;
using testing::ExpectSeparates;
using testing::ExpectSolved;
using testing::MakeSeparable;
using testing::Noise;
using testing::Point;
using testing::Problem;
using testing::RowsOf;
using testing::SeparableData;
using testing::SvmExample;

const Examples kLine = {Point({1}, 1), Point({2}, 1), Point({3}, -1), Point({4}, -1)};
const Examples kXor = {Point({-1, -1}, 1), Point({1, 1}, 1), Point({-1, 1}, -1),
                       Point({1, -1}, -1)};

Examples Gate(int at00, int at01, int at10, int at11) {
  return {Point({0, 0}, at00), Point({0, 1}, at01), Point({1, 0}, at10), Point({1, 1}, at11)};
}
// Two labels as classes: -1 becomes 0.
Examples AsClasses(Examples examples) {
  for (SvmExample& one : examples) one.label = one.label > 0 ? 1 : 0;
  return examples;
}
Examples Repeated(const Examples& examples, int times) {
  Examples all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), examples.begin(), examples.end());
  return all;
}
Examples Contradicting() {
  Examples examples;
  for (int i = 0; i < 2000; ++i)
    examples.push_back(Point({static_cast<float>(i), 1}, i < 1000 ? -1 : 1));
  examples.push_back(Point({1900, 1}, -1));
  return examples;
}
// Each row has a feature of its own, so that any set without the pair is separable.
Examples OnePair() {
  Examples examples;
  for (uint32_t i = 0; i < 600; ++i) examples.push_back({i % 2 == 0 ? 1 : -1, {i}, {0.7F}});
  examples.push_back({-1, {400}, {0.7F}});
  return examples;
}

struct Separable {
  const char* name;
  Examples examples;
  Problem problem;
  double margin;
};

// With the margin that was worked out between the bounds.
TEST(Separation, SeparableSetsHaveTheMarginWorkedOutByHand) {
  const float next = 1 + 0x1p-16F;
  const Separable cases[] = {
      // w = (-2, 5): 1 at x = 2 and at x = 3.
      {"a line has the margin of its two inner points", kLine, 1, 1 / std::sqrt(29.0)},
      {"a column of ones is the offset",
       {Point({1, 1}, 1), Point({2, 1}, 1), Point({3, 1}, -1), Point({4, 1}, -1)},
       0,
       1 / std::sqrt(29.0)},
      {"duplicates change no margin", Repeated(kLine, 51), 1, 1 / std::sqrt(29.0)},
      {"AND: (2, 2, -3)", Gate(-1, -1, -1, 1), 1, 1 / std::sqrt(17.0)},
      {"OR: (2, 2, -1)", Gate(-1, 1, 1, 1), 1, 1 / std::sqrt(9.0)},
      {"NAND", Gate(1, 1, 1, -1), 1, 1 / std::sqrt(17.0)},
      {"NOT: (-2, 1)", {Point({0}, 1), Point({1}, -1)}, 1, 1 / std::sqrt(5.0)},
      {"XOR with the product",
       {Point({-1, -1, 1}, 1), Point({1, 1, 1}, 1), Point({-1, 1, -1}, -1), Point({1, -1, -1}, -1)},
       1,
       1},
      // R / gamma is about 2.6e5.
      {"a margin far below the radius",
       {Point({1}, 1), Point({next}, -1)},
       1,
       1 / std::hypot(0x1p17, 0x1p17 + 1)},
      {"one row has its length", {Point({3, 4}, -1)}, 0, 5},
      {"the offset alone separates one label",
       {Point({1, 0}, -1), Point({-1, 0}, -1), Point({0, 0}, -1)},
       1,
       1},
      // W = I - 1/3 has the norm sqrt(2), and every s_y - s_r is 1.
      {"an axis for each class",
       {Point({1, 0, 0}, 0), Point({0, 1, 0}, 1), Point({0, 0, 1}, 2)},
       {0, 3},
       std::sqrt(0.5)},
      {"two classes have the margin of two labels times the root of two",
       AsClasses(kLine),
       {1, 2},
       std::sqrt(2 / 29.0)},
      {"two of two classes", {Point({1, 0}, 0), Point({0, 1}, 1)}, {0, 2}, 1},
  };
  for (const Separable& one : cases) {
    SCOPED_TRACE(one.name);
    const Analysis analysis = AnalyzeAll(one.examples, one.problem);
    ExpectSolved(one.examples, one.problem, analysis);
    EXPECT_LE(analysis.margin_floor, one.margin * (1 + 1e-15));
    EXPECT_GE(analysis.margin_ceiling, one.margin * (1 - 1e-15));
  }
}

struct Inseparable {
  const char* name;
  Examples examples;
  Problem problem;
  // In the order of the examples that have one in the certificate; empty: any.
  std::vector<std::string> multipliers;
};

TEST(Separation, InseparableSetsAreProvenSoByTheExamplesThatItTakes) {
  const Examples classes = AsClasses(kXor);
  const Inseparable cases[] = {
      {"a line through the origin", kLine, 0, {}},
      {"XOR", kXor, 1, {"1", "1", "1", "1"}},
      {"XOR through the origin", kXor, 0, {}},
      {"XOR with a small offset", kXor, 0.1, {}},
      {"XOR as two classes", classes, {1, 2}, {"1", "1", "1", "1"}},
      {"XOR as two of three classes", classes, {0.1, 3}, {"1", "1", "1", "1"}},
      // Two opposite points of one class are enough.
      {"XOR of classes through the origin", classes, {0, 7}, {"1", "1"}},
      {"one label through the origin", {Point({1, 0}, 1), Point({-1, 0}, 1)}, 0, {"1", "1"}},
      {"a zero row alone", {Point({}, 1)}, 0, {"1"}},
      {"a zero row", {Point({1, 2}, 1), Point({0, 0}, -1), Point({2, 1}, 1)}, 0, {"1"}},
      {"a zero row of classes", {Point({1, 2}, 0), Point({0, 0}, 1)}, {0, 3}, {"1"}},
      {"a contradiction among many", Contradicting(), 1, {}},
      {"the pair alone", OnePair(), 0, {"1", "1"}},
      {"a contradiction of classes",
       {Point({1, 2}, 0), Point({3, 1}, 1), Point({1, 2}, 2)},
       {1, 4},
       {"1", "1"}},
      {"rows that differ in scale",
       {Point({1, 3}, 1), Point({0x1p-20F, 0x3p-20F}, -1)},
       0,
       {"1", "1048576"}},
      {"a class inside another",
       {Point({1}, 0), Point({2}, 1), Point({3}, 0), Point({9}, 2)},
       {1, 3},
       {"1", "2", "1"}},
  };
  for (const Inseparable& one : cases) {
    SCOPED_TRACE(one.name);
    const Analysis analysis = AnalyzeAll(one.examples, one.problem);
    ExpectCertified(one.examples, one.problem, analysis);
    EXPECT_EQ(analysis.end, AnalysisEnd::kCertified);
    std::vector<std::string> multipliers;
    for (const CertificateEntry& entry : analysis.certificate)
      multipliers.push_back(entry.multiplier);
    EXPECT_EQ(multipliers, one.multipliers.empty() ? multipliers : one.multipliers);
  }
}

TEST(Separation, NamesSupportAndSeparator) {
  const Analysis line = AnalyzeAll(kLine, 1);
  EXPECT_DOUBLE_EQ(line.radius, std::sqrt(17.0));
  EXPECT_NEAR(line.update_bound, 493.0, 0.05);
  ASSERT_EQ(line.support.size(), 2U);
  EXPECT_EQ(line.support[0].example, 1U);
  EXPECT_EQ(line.support[1].example, 2U);
  ASSERT_EQ(line.separator->vectors[0].weights.size(), 1U);
  EXPECT_NEAR(line.separator->vectors[0].weights[0].weight, -2 / std::sqrt(29.0), 1e-6);
  EXPECT_NEAR(line.separator->vectors[0].bias_weight, 5 / std::sqrt(29.0), 1e-6);
  const Analysis classes = AnalyzeAll(AsClasses(kLine), {1, 2});
  EXPECT_NEAR(classes.update_bound, 493.0, 0.05);
  ASSERT_EQ(classes.support.size(), 2U);
  EXPECT_EQ(classes.support[0].rival, 0);
  EXPECT_EQ(classes.support[1].rival, 1);
  const Examples axes = {Point({1, 0, 0}, 0), Point({0, 1, 0}, 1), Point({0, 0, 1}, 2)};
  const Analysis identity = AnalyzeAll(axes, {0, 3});
  EXPECT_NEAR(identity.update_bound, 4, 1e-5);
  EXPECT_EQ(identity.support.size(), 6U);
  for (size_t k = 0; k < 3; ++k) {
    ASSERT_EQ(identity.separator->vectors[k].weights.size(), 3U);
    for (const FeatureWeight& weight : identity.separator->vectors[k].weights)
      EXPECT_NEAR(weight.weight, (weight.index == k ? 2 : -1) / std::sqrt(18.0), 1e-6);
    EXPECT_EQ(identity.separator->vectors[k].bias_weight, 0);
  }
}

TEST(Separation, AClassWithoutAnExampleIsARivalTooAndOneClassHasNothingToSeparate) {
  const Examples two = {Point({1, 0}, 0), Point({0, 1}, 1)};
  const Analysis with = AnalyzeAll(two, {0, 3});
  ExpectSolved(two, {0, 3}, with);
  EXPECT_LT(with.margin_ceiling, 1);
  const Examples between = {Point({1}, 0), Point({2}, 1), Point({3}, 2)};
  ExpectSolved(between, {1, 3}, AnalyzeAll(between, {1, 3}));
  EXPECT_EQ(AnalyzeAll({Point({1}, 0)}, {1, 1}).end, AnalysisEnd::kNoRows);
  const Analysis nothing = AnalyzeAll({}, 1);
  EXPECT_EQ(nothing.separability, Separability::kUndecided);
  EXPECT_EQ(nothing.end, AnalysisEnd::kNoRows);
  EXPECT_EQ(nothing.margin_floor, 0);
  EXPECT_EQ(nothing.margin_ceiling, std::numeric_limits<double>::infinity());
}

// Then it is the hard-margin SVM, which does not count the offset in ||w||: the margin is the
// distance to the plane x = 101.
TEST(Separation, ALargeOffsetValueCostsTheOffsetNothing) {
  const Examples examples = {Point({100}, -1), Point({102}, 1)};
  const Analysis with_1e5 = AnalyzeAll(examples, 1e5);
  ExpectSolved(examples, 1e5, with_1e5);
  EXPECT_LT(AnalyzeAll(examples, 1).margin_ceiling, 0.01);
  EXPECT_NEAR(with_1e5.margin_floor, 1, 2e-6);
}

TEST(Separation, FormsOfARowAreEqual) {
  const float dense[] = {0, 1, 0, 1};
  const uint32_t indices[] = {1, 3};
  const float ones[] = {1, 1};
  const float other[] = {1, 0, 0, 1};
  for (const Row& row : {Row{nullptr, dense, 4}, Row{indices, ones, 2}, Row{indices, nullptr, 2}}) {
    const std::vector<LabelledRow> rows = {{row, 1}, {Row{nullptr, other, 4}, -1}};
    const Analysis analysis = Analyze(rows, AnalysisOptions(), testing::GoOn);
    // Half the distance of the two z, whose common feature and offset cancel.
    EXPECT_EQ(analysis.separability, Separability::kSeparable);
    EXPECT_NEAR(analysis.margin_floor, std::sqrt(0.5), 1e-6);
    ASSERT_EQ(analysis.separator->vectors[0].weights.size(), 2U);
    EXPECT_EQ(analysis.separator->vectors[0].weights[0].index, 0U);
    EXPECT_EQ(analysis.separator->vectors[0].weights[1].index, 1U);
  }
}

TEST(Separation, IndicesMayBeHugeAndFarApartAndFloatsOfAnySize) {
  const Examples far = {{1, {7, (1U << 28) - 1}, {1, 1}}, {-1, {7, 1000000}, {1, 1}}};
  const Analysis apart = AnalyzeAll(far, 1);
  ExpectSolved(far, 1, apart);
  EXPECT_EQ(apart.separator->vectors[0].weights.back().index, (1U << 28) - 1);
  for (const float scale : {0x1p-140F, 0x1p-60F, 0x1p60F, 0x1p124F}) {
    Examples examples = kLine;
    for (auto& example : examples)
      example = Point({example.values[0] * scale, scale}, example.label);
    const Analysis analysis = AnalyzeAll(examples, 0);
    ExpectSolved(examples, 0, analysis);
    EXPECT_LE(analysis.margin_floor, scale / std::sqrt(29.0) * (1 + 1e-15));
    EXPECT_GE(analysis.margin_ceiling, scale / std::sqrt(29.0) * (1 - 1e-15));
    Examples inseparable = kXor;
    for (auto& example : inseparable)
      for (float& value : example.values) value *= scale;
    ExpectCertified(inseparable, 0, AnalyzeAll(inseparable, 0));
  }
}

// Four classes without a bias, with features of a million and of a millionth.
const Examples kBadlyScaled = {
    Point({-1425358.375F, 4.4820805555900733e-07F, 2.6504093852963706e-07F}, 3),
    Point({-529443.0625F, 3.671540298455511e-07F, -5.853097491126391e-07F}, 3),
    Point({-525487.1875F, -1.0861735972866882e-06F, 4.725959854567918e-07F}, 3),
    Point({-664304.6875F, 5.932022304477869e-07F, 9.487434340371692e-07F}, 1),
    Point({-274707.9375F, 6.725908292537497e-07F, 0}, 1),
    Point({1976538.5F, -5.549362640522304e-07F, 2.235379042758723e-06F}, 0),
    Point({298964.5625F, 6.046000748938241e-07F, 9.939731171471067e-07F}, 1),
    Point({0, 6.611485758867275e-08F, -2.9505767997761723e-06F}, 2)};

// Two measurements and a Unix timestamp, which the labels do not depend on.
const Examples kTimestamps = {
    Point({2.6382F, -0.6629F, 1700948774.F}, 1),   Point({1.0941F, 0.5151F, 1702836752.F}, 1),
    Point({-0.4310F, -1.4827F, 1705169671.F}, -1), Point({-0.3069F, 0.6907F, 1700599524.F}, -1),
    Point({-0.8125F, -0.2868F, 1707225437.F}, -1), Point({-1.4635F, -1.3792F, 1708540734.F}, -1),
    Point({1.4907F, -0.3919F, 1707463414.F}, 1),   Point({-2.4514F, -0.0279F, 1700460448.F}, -1),
    Point({-1.8220F, 1.7480F, 1706375592.F}, -1),  Point({-2.1414F, 0.9586F, 1702759657.F}, -1),
    Point({-0.9815F, -0.2724F, 1700400272.F}, -1), Point({0.5744F, 0.5532F, 1708559176.F}, 1),
    Point({-3.9347F, -0.2338F, 1709393400.F}, -1), Point({1.1790F, 1.9256F, 1706957024.F}, 1),
    Point({-0.5131F, -2.1671F, 1706111193.F}, -1), Point({0.5310F, -0.9055F, 1707478762.F}, 1),
    Point({1.1868F, 1.4207F, 1707741119.F}, 1),    Point({-0.7266F, -0.6270F, 1704682558.F}, -1),
    Point({1.3498F, -0.5363F, 1705937862.F}, 1),   Point({-0.8802F, -0.9360F, 1707734500.F}, -1),
    Point({-1.2520F, 1.2970F, 1709354687.F}, -1),  Point({-0.4894F, -1.1391F, 1703721371.F}, -1),
    Point({2.0097F, -0.6695F, 1702786186.F}, 1),   Point({1.2892F, -0.9683F, 1708049140.F}, 1),
    Point({-1.2183F, 2.3381F, 1708459891.F}, -1),  Point({-1.4002F, -0.4532F, 1709864075.F}, -1),
    Point({-1.6497F, 0.8967F, 1708202489.F}, -1),  Point({-2.6261F, -0.1741F, 1701264588.F}, -1),
    Point({0.4954F, -0.8929F, 1700141294.F}, 1),   Point({0.8452F, -0.3574F, 1701781017.F}, 1)};

// Two rows of the margin 4.2e-8, which is as small as float64's rounding of their scores.
TEST(Separation, RowsThatNearlyCancelAreDecidedWithTrueBounds) {
  const Examples examples = {Point({1, 1}, 1), Point({1, 1 + 0x1p-23F}, -1)};
  const double margin = 0x1p-23 / std::hypot(2.0, 2 + 0x1p-23);
  const Analysis analysis = AnalyzeAll(examples, 0);
  testing::ExpectDecided(examples, 0, analysis);
  EXPECT_EQ(analysis.separability, Separability::kSeparable);
  EXPECT_LE(analysis.margin_floor, margin);
  EXPECT_GE(analysis.margin_floor, 0.9 * margin);
  EXPECT_NEAR(analysis.margin_ceiling, margin, 1e-6 * margin);
}

// In few of the stretches of work after which an analysis asks whether to go on; it went on for ever.
TEST(Separation, SmallSetsWhoseFeaturesDifferInScaleAreDecidedSoon) {
  const std::pair<Examples, Problem> cases[] = {{kBadlyScaled, {0, 4}}, {kTimestamps, 1}};
  for (const auto& [examples, problem] : cases) {
    AnalysisOptions options;
    options.bias_input = problem.b;
    options.classes = problem.classes;
    int calls = 0;
    const Analysis analysis =
        Analyze(RowsOf(examples), options, [&](const AnalysisProgress&) { return ++calls <= 20; });
    testing::ExpectDecided(examples, problem, analysis);
  }
}

// Texts of words by Zipf's law, labelled by a hidden separator: most have rare words, and support the margin.
Examples Texts(size_t count) {
  constexpr uint32_t kWords = 20'000;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> separator(kWords);
  for (double& weight : separator) weight = normal(random);
  Examples examples(count);
  for (SvmExample& one : examples) {
    std::set<uint32_t> words;
    while (words.size() < 20)
      words.insert(static_cast<uint32_t>(std::pow(kWords, uniform(random))) - 1);
    double score = 0;
    for (const uint32_t word : words) score += separator[word];
    one = {score > 0 ? 1 : -1, {words.begin(), words.end()}, std::vector<float>(words.size(), 1)};
  }
  return examples;
}

// Solved within as many of the stretches of work after which an analysis asks whether to go on, not within their square.
void ExpectSolvedSoon(const Examples& texts) {
  int calls = 0;
  const Analysis analysis = Analyze(RowsOf(texts), AnalysisOptions(),
                                    [&](const AnalysisProgress&) { return ++calls <= 100; });
  EXPECT_EQ(analysis.end, AnalysisEnd::kGapReached);
  EXPECT_GT(analysis.support.size(), 1500U);
  ExpectSolved(texts, 1, analysis);
}

TEST(Separation, AMarginThatThousandsOfRowsSupportIsFoundInWorkByTheirNumber) {
  Examples texts = Texts(4000);
  ExpectSolvedSoon(texts);
  // The margin becomes small beside R.
  texts.push_back({1, {20'000}, {1e4F}});
  ExpectSolvedSoon(texts);
}

TEST(Limits, AndOtherEndsHaveAReasonEach) {
  constexpr int kEnds = static_cast<int>(AnalysisEnd::kTooManyWeights) + 1;
  std::set<std::string> reasons;
  for (int end = 0; end < kEnds; ++end) reasons.insert(ToString(static_cast<AnalysisEnd>(end)));
  EXPECT_EQ(reasons.size(), size_t{kEnds});
  EXPECT_FALSE(reasons.contains(""));
}

TEST(Limits, EndWithTheBoundsProvenByThen) {
  const SeparableData data = MakeSeparable(10, 3000, 20, 0.02, 1);
  const auto limited = [&](const Examples& examples, auto limit) {
    AnalysisOptions options;
    limit(options);
    return AnalyzeWith(examples, options);
  };
  const Analysis rounds =
      limited(data.examples, [](AnalysisOptions& options) { options.max_rounds = 2; });
  EXPECT_EQ(rounds.end, AnalysisEnd::kOutOfRounds);
  EXPECT_EQ(rounds.rounds, 2U);
  EXPECT_GE(rounds.margin_ceiling, data.margin);
  ExpectCeiling(data.examples, 1, rounds);
  const Analysis support =
      limited(data.examples, [](AnalysisOptions& options) { options.max_support_rows = 3; });
  EXPECT_EQ(support.end, AnalysisEnd::kTooManySupportRows);
  EXPECT_GE(support.margin_ceiling, data.margin);
  const Analysis certificate = limited(
      Noise(9, 400, 60), [](AnalysisOptions& options) { options.max_certificate_rows = 61; });
  EXPECT_EQ(certificate.separability, Separability::kUndecided);
  EXPECT_EQ(certificate.end, AnalysisEnd::kCertificateTooLarge);
  EXPECT_TRUE(certificate.certificate.empty());
  const Examples two = {Point({1, 0}, 0), Point({0, 1}, 1)};
  for (const size_t most : {29, 30}) {
    const Analysis weights = limited(two, [most](AnalysisOptions& options) {
      options.classes = 10;
      options.max_weights = most;
    });
    EXPECT_EQ(weights.end == AnalysisEnd::kTooManyWeights, most == 29);
    EXPECT_EQ(weights.separability,
              most == 29 ? Separability::kUndecided : Separability::kSeparable);
    EXPECT_EQ(std::isinf(weights.margin_ceiling), most == 29);
  }
}

TEST(Cancelling, AtAnyCallEndsWithTrueBoundsWhichNoRoundLoses) {
  const std::pair<Examples, Problem> cases[] = {
      {MakeSeparable(11, 2000, 60, 0.01, 1).examples, 1},
      {testing::DrawClasses(3, {12, 40, 600, 1, 0.005}), {1, 12}}};
  for (const auto& [examples, problem] : cases) {
    const auto rows = RowsOf(examples);
    AnalysisOptions options;
    options.classes = problem.classes;
    int calls = 0;
    AnalysisProgress last;
    last.margin_ceiling = std::numeric_limits<double>::infinity();
    const Analysis whole = Analyze(rows, options, [&](const AnalysisProgress& now) {
      EXPECT_GE(now.margin_floor, last.margin_floor);
      EXPECT_LE(now.margin_ceiling, last.margin_ceiling);
      EXPECT_GE(now.round, last.round);
      EXPECT_GE(now.working_rows, last.working_rows);
      last = now;
      return ++calls > 0;
    });
    ExpectSolved(examples, problem, whole);
    EXPECT_GE(whole.margin_floor, last.margin_floor);
    EXPECT_LE(whole.margin_ceiling, last.margin_ceiling);
    ASSERT_GT(calls, 3);
    for (int at = 1; at <= calls; at += 1 + calls / 10) {
      int left = at;
      const Analysis analysis =
          Analyze(rows, options, [&](const AnalysisProgress&) { return --left > 0; });
      ASSERT_EQ(left, 0) << "called again after it cancelled";
      EXPECT_EQ(analysis.end, AnalysisEnd::kCancelled);
      EXPECT_GE(analysis.margin_ceiling, whole.margin_floor);
      EXPECT_LE(analysis.margin_floor, whole.margin_ceiling);
      EXPECT_EQ(analysis.separability == Separability::kSeparable, analysis.margin_floor > 0);
      if (analysis.separator) ExpectSeparates(examples, problem, *analysis.separator);
      if (!analysis.support.empty()) ExpectCeiling(examples, problem, analysis);
    }
  }
}

TEST(Cancelling, EndsTheSearchForACertificateAtAnyCall) {
  const auto noise = Noise(1, 101, 50);
  const auto rows = RowsOf(noise);
  int calls = 0;
  Analyze(rows, AnalysisOptions(), [&](const AnalysisProgress&) { return ++calls > 0; });
  for (int at = 1; at <= calls; ++at) {
    int left = at;
    const Analysis analysis =
        Analyze(rows, AnalysisOptions(), [&](const AnalysisProgress&) { return --left > 0; });
    ASSERT_EQ(left, 0) << "called again after it cancelled";
    EXPECT_EQ(analysis.end, AnalysisEnd::kCancelled) << at;
    EXPECT_TRUE(analysis.certificate.empty());
  }
}

struct Set {
  const char* file;
  // (R / gamma*)^2 with b = 1.
  double bound;
};

class RealSet : public ::testing::TestWithParam<Set> {};

TEST_P(RealSet, HasTheBoundOfItsMargin) {
  LOAD_OR_SKIP(data, GetParam().file);
  const Analysis analysis = AnalyzeAll(data.examples, 1);
  ExpectSolved(data.examples, 1, analysis);
  const double tolerance = 1e-5 * GetParam().bound;
  for (const double margin : {analysis.margin_ceiling, analysis.margin_floor})
    EXPECT_NEAR(std::pow(analysis.radius / margin, 2), GetParam().bound, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Sets, RealSet,
                         ::testing::Values(Set{"agaricus.train", 304.6752},
                                           Set{"iris_setosa.all", 221.7839},
                                           Set{"sms_tfidf.train", 1111.8675},
                                           Set{"mnist38.train", 24130.8631}));

TEST(RealStream, OfElectricityPricesIsNotSeparable) {
  LOAD_OR_SKIP(data, "elec2.stream");
  for (const double b : {0.0, 1.0}) {
    const Analysis analysis = AnalyzeAll(data.examples, b);
    ExpectCertified(data.examples, b, analysis);
    // A vertex has at most one row more than there are columns.
    EXPECT_LE(analysis.certificate.size(), 8U);
  }
}

TEST(RealClasses, OfDigitsAreSeparable) {
  const auto path = testing::FindSharedData("digits_mc.train");
  if (!path) GTEST_SKIP() << "digits_mc.train is not there: set PERCEPTROND_DATA";
  const testing::SvmData data = testing::ReadSvmlightClasses(*path);
  ExpectSolved(data.examples, {1, 10}, AnalyzeAll(data.examples, {1, 10}));
}

}  // namespace
}  // namespace perceptrond
