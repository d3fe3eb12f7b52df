#include "client/load/synthetic_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"

namespace perceptrond::client {
namespace {

constexpr int kRound = 4096;

// The perceptron without an offset, in float64, as Rosenblatt has it: mistakes in a round.
class Perceptron {
 public:
  int Round(SyntheticRows& rows) {
    int mistakes = 0;
    for (int i = 0; i < kRound; ++i) mistakes += Learn(rows.Next());
    return mistakes;
  }
  int Learn(const Row& row) {
    double score = 0;
    for (size_t i = 0; i < row.indices.size(); ++i)
      score += weights_[row.indices[i]] * row.values[i];
    if (row.label * score > 0) return 0;
    for (size_t i = 0; i < row.indices.size(); ++i)
      weights_[row.indices[i]] += row.label * row.values[i];
    return 1;
  }

 private:
  std::unordered_map<uint32_t, double> weights_;
};

TEST(SyntheticRows, HaveTheShapeAskedFor) {
  SyntheticRowsOptions options;
  options.size = 1000;
  options.features = 20;
  SyntheticRows rows(options);
  for (int i = 0; i < 2 * kRound; ++i) {
    const Row& row = rows.Next();
    ASSERT_EQ(row.kind, RowKind::kSparse);
    ASSERT_EQ(std::set<uint32_t>(row.indices.begin(), row.indices.end()).size(), 20U);
    ASSERT_LT(row.indices.back(), 1000U);
    ASSERT_EQ(row.values.size(), 20U);
    ASSERT_EQ(std::abs(row.label), 1);
  }
  options.kind = RowKind::kDense;
  options.labels = false;
  SyntheticRows dense(options);
  EXPECT_EQ(dense.Next().values.size(), 1000U);
  EXPECT_FALSE(dense.Next().has_label());
  options.kind = RowKind::kNamed;
  SyntheticRows named(options);
  EXPECT_EQ(named.Next().name_count(), 20U);
}

TEST(SyntheticRows, HaveFewFrequentNamesAndManyRareOnes) {
  SyntheticRowsOptions options;
  options.kind = RowKind::kNamed;
  options.size = 100'000;
  options.features = 75;
  SyntheticRows rows(options);
  std::unordered_map<std::string, int> counts;
  for (int i = 0; i < kRound; ++i) {
    const Row& row = rows.Next();
    std::set<std::string_view> names;
    for (size_t j = 0; j < row.name_count(); ++j) {
      names.insert(row.name(j));
      ++counts[std::string(row.name(j))];
    }
    ASSERT_EQ(names.size(), 75U);
  }
  EXPECT_GT(counts["f0"], kRound * 9 / 10);
  const auto rare = std::count_if(counts.begin(), counts.end(),
                                  [](const auto& name) { return name.second <= 3; });
  EXPECT_GT(rare, 20'000);
}

// Ascending, of all indices alike, however many of them a row has.
TEST(SyntheticRows, HaveIndicesFromTheWholeSpaceUpToAllOfThem) {
  for (const uint32_t features : {1U, 31U, 32U, 256U, 511U, 512U}) {
    SyntheticRowsOptions options;
    options.size = 512;
    options.features = features;
    SyntheticRows rows(options);
    std::vector<int> taken(options.size);
    const auto count = static_cast<int>(SyntheticRows::Count(options));
    for (int i = 0; i < count; ++i) {
      const Row& row = rows.Next();
      ASSERT_EQ(row.indices.size(), features);
      for (size_t j = 0; j < features; ++j) {
        ASSERT_LT(row.indices[j], options.size);
        if (j > 0) {
          ASSERT_LT(row.indices[j - 1], row.indices[j]);
        }
        ++taken[row.indices[j]];
      }
    }
    // Each place as often as the others: within six standard deviations of a binomial.
    const double share = features / 512.0;
    const double most = 6 * std::sqrt(count * share * (1 - share));
    for (const int times : taken) EXPECT_NEAR(times, count * share, most + 1) << features;
  }
}

TEST(SyntheticRows, AreLearnedWithoutMistakesAfterSomeRounds) {
  SyntheticRows rows{SyntheticRowsOptions()};
  Perceptron perceptron;
  int rounds = 0;
  while (perceptron.Round(rows) > 0) ASSERT_LT(++rounds, 20);
}

TEST(SyntheticRows, ASmallSpaceHasRoomToTellThemApart) {
  SyntheticRowsOptions options;
  options.size = 1000;
  SyntheticRows rows(options);
  Perceptron perceptron;
  int rounds = 0;
  while (perceptron.Round(rows) > 0) ASSERT_LT(++rounds, 20);
}

TEST(SyntheticRows, StreamsThatShareAModelShareTheNumberOfExamples) {
  SyntheticRowsOptions options;
  const size_t alone = SyntheticRows::Count(options);
  for (const uint32_t parts : {2, 16, 256}) {
    options.parts = parts;
    EXPECT_EQ(SyntheticRows::Count(options) * parts, alone);
  }
  SyntheticRows rows(options);
  std::set<const Row*> round;
  while (round.insert(&rows.Next()).second) {
  }
  EXPECT_EQ(round.size(), alone / options.parts);
}

TEST(SyntheticRows, AsManyAsAskedForAreMistakesForEverAndNoOthers) {
  for (const double share : {0.01, 0.1}) {
    SyntheticRowsOptions options;
    options.mistakes = share;
    SyntheticRows rows(options);
    Perceptron perceptron;
    for (int i = 0; i < 20; ++i) perceptron.Round(rows);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(perceptron.Round(rows), share * kRound, 1);
  }
}

TEST(SyntheticRows, StreamsThatShareAModelDoNotDisturbEachOthersMistakes) {
  SyntheticRowsOptions options;
  options.size = 1U << 22;
  options.mistakes = 0.1;
  options.parts = 2;
  SyntheticRows first(options);
  options.part = 1;
  options.seed = 2;
  SyntheticRows second(options);
  Perceptron perceptron;
  const auto round = [&] { return perceptron.Round(first) + perceptron.Round(second); };
  for (int i = 0; i < 20; ++i) round();
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(round(), 0.1 * 2 * kRound, 2);
}

TEST(SyntheticRows, TheShareToBeRefusedHasALabelThatIsNone) {
  SyntheticRowsOptions options;
  options.invalid = 0.25;
  SyntheticRows rows(options);
  int invalid = 0;
  for (int i = 0; i < kRound; ++i) invalid += std::abs(rows.Next().label) == 1 ? 0 : 1;
  EXPECT_EQ(invalid, kRound / 4);
}

TEST(SyntheticRows, OneSeedMakesTheSameRowsAndAnotherOthers) {
  SyntheticRowsOptions options;
  SyntheticRows one(options);
  SyntheticRows same(options);
  options.seed = 2;
  SyntheticRows other(options);
  const std::vector<uint32_t> indices = one.Next().indices;
  EXPECT_EQ(indices, same.Next().indices);
  EXPECT_NE(indices, other.Next().indices);
}

}  // namespace
}  // namespace perceptrond::client
