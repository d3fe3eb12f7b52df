#include "core/features/mapper.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::NamedColumns;

const FeatureSpace kDense{FeatureSpace::Kind::kDense, 8};
const FeatureSpace kHashed{FeatureSpace::Kind::kHashed, 8};
const FeatureSpace kNamed{FeatureSpace::Kind::kNamed, 8};

// The published test vector of XXH3-64 with seed 0 for no bytes.
TEST(HashName, IsXxh3) { EXPECT_EQ(HashName(""), 0x2D06800538D394C2U); }

TEST(Mapper, GivesTheVeryRowAndItsNormWithoutAMap) {
  const Columns dense = Columns().AddDense({1, 2, 3, 4, 5, 6, 7, 8}, 1);
  const Columns sparse = Columns().Add({0}, {1}, 1).Add({1, 5}, {2, 3}, 1);
  for (const FeatureSpace& space : {kDense, kHashed}) {
    Mapper mapper(space);
    double squared_norm = 0;
    ASSERT_FALSE(mapper.Begin(dense.batch()));
    ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kNone);
    EXPECT_EQ(squared_norm, 204);
    EXPECT_EQ(mapper.Map(0).values, dense.batch().values.data());
    EXPECT_EQ(mapper.Map(0).indices, nullptr);
    ASSERT_FALSE(mapper.Begin(sparse.batch()));
    ASSERT_EQ(mapper.Check(1, &squared_norm), ValidationCode::kNone);
    EXPECT_EQ(squared_norm, 13);
    EXPECT_EQ(mapper.Map(1).values, sparse.batch().values.data() + 1);
  }
}

TEST(Mapper, RefusesRowsThatAreNotWellFormed) {
  const Columns columns = Columns().Add({2, 1}, {1, 1}, 1).Add({8}, {1}, 1).Add({1, 2}, {1, 1}, 1);
  Mapper mapper(kDense, 1);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  double squared_norm = 0;
  EXPECT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kTooManyFeatures);
  EXPECT_EQ(mapper.Check(1, &squared_norm), ValidationCode::kIndexOutOfRange);
  const ValidationError error = mapper.Describe(2, ValidationCode::kTooManyFeatures);
  EXPECT_EQ(error.field, "indices");
}

TEST(Mapper, RefusesNamesWhoseSumInASlotLeavesFloat32) {
  std::vector<std::pair<std::string, float>> features;
  for (int i = 0; i < 9; ++i)
    features.emplace_back(absl::StrCat("n", i), std::numeric_limits<float>::max());
  const NamedColumns columns({{features, 1}, {{{"n1", 1}}, 1}});
  Mapper mapper(kHashed);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  double squared_norm = 0;
  ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kNonFiniteValue);
  EXPECT_EQ(mapper.Describe(0, ValidationCode::kNonFiniteValue).field, "values");
  EXPECT_EQ(mapper.Check(1, &squared_norm), ValidationCode::kNone);
  EXPECT_EQ(squared_norm, 1);
}

TEST(Mapper, FindsFaultWithAFormTheSpaceDoesNotTake) {
  const NamedColumns named({{{{"a", 1}}, 1}});
  const Columns indexed = Columns().Add({1}, {1}, 1);
  const Columns full = Columns().AddDense({1, 2}, 1);
  EXPECT_EQ(Mapper(kDense).Begin(named.batch()).code, ValidationCode::kMalformedColumns);
  EXPECT_EQ(Mapper(kNamed).Begin(indexed.batch()).field, "feature_names");
  EXPECT_EQ(Mapper(kNamed).Begin(full.batch()).field, "dense_width");
}

TEST(Mapper, AddsUpNamesThatShareASlotAndSortsTheSlots) {
  std::vector<std::pair<std::string, float>> features;
  std::vector<double> expected(8);
  for (int i = 0; i < 40; ++i) {
    const std::string name = absl::StrCat("name", i);
    features.emplace_back(name, static_cast<float>(i));
    expected[HashName(name) & 7] += i;
  }
  const NamedColumns columns({{features, 1}});
  Mapper mapper(kHashed);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  const Row row = mapper.Map(0);
  std::vector<double> sums(8);
  for (size_t i = 0; i < row.size; ++i) {
    if (i > 0) {
      EXPECT_LT(row.index(i - 1), row.index(i));
    }
    sums[row.index(i)] = row.value(i);
  }
  EXPECT_EQ(sums, expected);
}

TEST(Mapper, NumbersKnownNamesAndListsUnknownOnes) {
  Dictionary dictionary;
  dictionary.Add("b");
  dictionary.Add("a");
  const NamedColumns columns({{{{"a", 1}, {"b", 2}, {"c", 3}}, 1}});
  Mapper mapper(kNamed);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  mapper.Resolve(dictionary);
  const Row row = mapper.Map(0);
  ASSERT_EQ(row.size, 3U);
  EXPECT_EQ(row.index(0), 2U);
  EXPECT_EQ(row.index(1), 1U);
  EXPECT_EQ(row.index(2), Dictionary::kUnknown);
  std::vector<absl::string_view> unknown;
  mapper.UnknownNames(0, unknown);
  EXPECT_EQ(unknown, std::vector<absl::string_view>{"c"});
}

// A row without features is sparse, whatever stands beside it: null indices would make it dense.
TEST(Mapper, ARowWithoutFeaturesStaysSparse) {
  const NamedColumns columns({{{}, 1}, {{{"a", 1}}, 1}});
  for (const FeatureSpace& space : {kHashed, kNamed}) {
    Mapper mapper(space);
    ASSERT_FALSE(mapper.Begin(columns.batch()));
    mapper.Resolve(Dictionary());
    const Row row = mapper.Map(0);
    EXPECT_EQ(row.size, 0U);
    EXPECT_NE(row.indices, nullptr);
  }
}

TEST(Dictionary, NumbersNamesInTheOrderTheyCome) {
  Dictionary dictionary;
  for (uint32_t i = 1; i <= 1000; ++i) EXPECT_EQ(dictionary.Add(absl::StrCat("n", i)), i);
  EXPECT_EQ(dictionary.size(), 1000U);
  for (uint32_t i = 1; i <= 1000; ++i) {
    EXPECT_EQ(dictionary.Find(absl::StrCat("n", i)), i);
    EXPECT_EQ(dictionary.Name(i), absl::StrCat("n", i));
  }
  EXPECT_EQ(dictionary.Find("n1001"), Dictionary::kUnknown);
  EXPECT_GT(dictionary.bytes(), size_t{1000} * 12);
  EXPECT_LT(dictionary.bytes(), size_t{1000} * 64);
}

}  // namespace
}  // namespace perceptrond
