#include "core/features/feature_space.h"

#include <limits>

#include "tests/core/features/mapping.h"

namespace perceptrond {
namespace {

using testing::Fourier;
using testing::Polynomial;
using testing::Products;
using Kind = FeatureSpace::Kind;

constexpr Kind kKinds[] = {Kind::kDense, Kind::kHashed, Kind::kNamed};

// The field of the problem; empty: none.
std::string Wrong(const FeatureSpace& space) {
  const std::optional<MapProblem> problem = CheckFeatureMap(space);
  if (!problem.has_value()) return "";
  EXPECT_FALSE(problem->description.empty());
  return problem->field;
}

TEST(FeatureMap, CountsItsWeights) {
  EXPECT_EQ(Polynomial(Kind::kDense, 10, 3).initial_weights(), 285U);
  EXPECT_EQ(Polynomial(Kind::kDense, 10, 3, true).initial_weights(), 175U);
  EXPECT_EQ(Polynomial(Kind::kDense, 2, 4, true).initial_weights(), 3U);
  EXPECT_EQ(Polynomial(Kind::kHashed, 64, 3).initial_weights(), 64U);
  EXPECT_EQ(Polynomial(Kind::kNamed, 64, 3).initial_weights(), 1U);
  EXPECT_EQ(Products(Kind::kHashed, 64, {{"a", "b"}}).initial_weights(), 64U);
  for (const Kind kind : kKinds) {
    const FeatureSpace mapped = Fourier(kind, 64, 100, 1, 0).mapped();
    EXPECT_EQ(mapped.kind, Kind::kDense);
    EXPECT_EQ(mapped.size, 100U);
    EXPECT_EQ(mapped.map.kind, FeatureMap::Kind::kIdentity);
  }
}

TEST(FeatureMap, NamesTheFieldThatIsWrong) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Kind kind : kKinds) {
    for (const uint32_t degree : {1U, 5U}) EXPECT_EQ(Wrong(Polynomial(kind, 16, degree)), "degree");
    for (const uint32_t degree : {2U, 4U}) EXPECT_EQ(Wrong(Polynomial(kind, 16, degree)), "");
    EXPECT_EQ(Wrong(Fourier(kind, 16, 100, 1, 0)), "");
    for (const uint32_t dimension : {0U, FeatureMap::kMaxFourierDimension + 1})
      EXPECT_EQ(Wrong(Fourier(kind, 16, dimension, 1, 0)), "dimension");
    for (const double gamma : {0.0, -1.0, 1e13, kInfinity, kInfinity - kInfinity})
      EXPECT_EQ(Wrong(Fourier(kind, 16, 100, gamma, 0)), "gamma");
  }
  EXPECT_EQ(Wrong(Products(Kind::kDense, 16, {{"a", "b"}})), "kind");
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, {{"a", "b"}, {"a", "a"}, {"", "a"}})), "");
  const std::vector<GroupPair> bad[] = {
      {},
      {{"a", "b"}, {"b", "a"}},
      {{"a", "b^"}},
      {{"a", std::string(1024, 'b')}},
      std::vector<GroupPair>(FeatureMap::kMaxPairs + 1, {"a", "b"})};
  for (const std::vector<GroupPair>& pairs : bad)
    EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, pairs)), "pairs");
}

// C(d + 2, 2) - 1 reaches 2^28 between d = 23168 and 23169.
TEST(FeatureMap, ADensePolynomialHasAtMostAsManyWeightsAsAModelMay) {
  EXPECT_EQ(Wrong(Polynomial(Kind::kDense, 23168, 2)), "");
  EXPECT_LE(Polynomial(Kind::kDense, 23168, 2).initial_weights(), FeatureSpace::kMaxFeatures);
  EXPECT_EQ(Wrong(Polynomial(Kind::kDense, 23169, 2)), "degree");
  for (const uint32_t degree : {2U, 3U, 4U}) {
    for (const bool interactions : {false, true}) {
      constexpr uint32_t kMost = FeatureSpace::kMaxFeatures;
      EXPECT_EQ(Wrong(Polynomial(Kind::kDense, kMost, degree, interactions)), "degree");
      EXPECT_EQ(Wrong(Polynomial(Kind::kHashed, kMost, degree, interactions)), "");
    }
  }
}

}  // namespace
}  // namespace perceptrond
