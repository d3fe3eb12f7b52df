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

TEST(FeatureMap, IsTheIdentityUnlessSaidOtherwise) {
  for (const Kind kind : kKinds) {
    const FeatureSpace space{kind, 16};
    EXPECT_EQ(Wrong(space), "");
    EXPECT_EQ(MakeExpansion(space), nullptr);
    EXPECT_EQ(space.mapped().kind, kind);
    EXPECT_EQ(space.mapped().size, 16U);
    EXPECT_EQ(space.initial_weights(), kind == Kind::kNamed ? 1U : 16U);
  }
}

TEST(FeatureMap, ChecksDegrees) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(Wrong(Polynomial(kind, 16, 1)), "degree");
    EXPECT_EQ(Wrong(Polynomial(kind, 16, 2)), "");
    EXPECT_EQ(Wrong(Polynomial(kind, 16, 4)), "");
    EXPECT_EQ(Wrong(Polynomial(kind, 16, 5)), "degree");
  }
}

// C(d + 2, 2) - 1 reaches 2^28 between d = 23168 and 23169.
TEST(FeatureMap, ADensePolynomialHasAtMostAsManyWeightsAsAModelMay) {
  EXPECT_EQ(Wrong(Polynomial(Kind::kDense, 23168, 2)), "");
  EXPECT_LE(Polynomial(Kind::kDense, 23168, 2).initial_weights(), FeatureSpace::kMaxFeatures);
  EXPECT_EQ(Wrong(Polynomial(Kind::kDense, 23169, 2)), "degree");
  for (const uint32_t degree : {2U, 3U, 4U}) {
    for (const bool interactions : {false, true}) {
      EXPECT_EQ(Wrong(Polynomial(Kind::kDense, FeatureSpace::kMaxFeatures, degree, interactions)),
                "degree");
      EXPECT_EQ(Wrong(Polynomial(Kind::kHashed, FeatureSpace::kMaxFeatures, degree, interactions)),
                "");
    }
  }
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

TEST(FeatureMap, ChecksPairsOfGroups) {
  EXPECT_EQ(Wrong(Products(Kind::kDense, 16, {{"a", "b"}})), "kind");
  EXPECT_EQ(Wrong(Products(Kind::kHashed, 16, {})), "pairs");
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, {{"a", "b"}, {"a", "a"}, {"", "a"}})), "");
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, {{"a", "b"}, {"b", "a"}})), "pairs");
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, {{"a", "b^"}})), "pairs");
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, {{"a", std::string(1024, 'b')}})), "pairs");
  const std::vector<GroupPair> too_many(FeatureMap::kMaxPairs + 1, {"a", "b"});
  EXPECT_EQ(Wrong(Products(Kind::kNamed, 16, too_many)), "pairs");
}

TEST(FeatureMap, ChecksFourierSettings) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(Wrong(Fourier(kind, 16, 100, 1, 0)), "");
    EXPECT_EQ(Wrong(Fourier(kind, 16, 0, 1, 0)), "dimension");
    EXPECT_EQ(Wrong(Fourier(kind, 16, FeatureMap::kMaxFourierDimension + 1, 1, 0)), "dimension");
    for (const double gamma : {0.0, -1.0, 1e13, std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()})
      EXPECT_EQ(Wrong(Fourier(kind, 16, 100, gamma, 0)), "gamma");
  }
}

}  // namespace
}  // namespace perceptrond
