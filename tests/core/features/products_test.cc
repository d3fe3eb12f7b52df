#include "core/features/products.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"
#include "tests/core/features/mapping.h"

namespace perceptrond {
namespace {

using testing::ByIndex;
using testing::ByName;
using testing::Columns;
using testing::NamedColumns;
using testing::NamedExample;
using Kind = FeatureSpace::Kind;
using Names = std::map<std::string, float>;

FeatureSpace Named(std::vector<GroupPair> pairs, bool interactions_only = false) {
  return testing::Products(Kind::kNamed, 10000, std::move(pairs), interactions_only);
}

TEST(GroupOf, IsWhatStandsBeforeTheFirstCircumflex) {
  EXPECT_EQ(GroupOf("user^alice"), "user");
  EXPECT_EQ(GroupOf("user^a^b"), "user");
  EXPECT_EQ(GroupOf("alice"), "");
  EXPECT_EQ(GroupOf("^alice"), "");
  EXPECT_EQ(GroupOf("user^"), "user");
}

TEST(Products, MultiplyEveryFeatureOfOneGroupWithEveryOneOfTheOther) {
  const NamedColumns columns(
      {{{{"user^ann", 2}, {"item^x", 3}, {"item^y", 5}, {"hour^9", 7}, {"bias", 11}}, 1}});
  const Names originals = {
      {"user^ann", 2}, {"item^x", 3}, {"item^y", 5}, {"hour^9", 7}, {"bias", 11}};
  Names expected = originals;
  expected["item^x*user^ann"] = 6;
  expected["item^y*user^ann"] = 10;
  EXPECT_EQ(ByName(Named({{"user", "item"}}), columns.batch()), expected);
  expected["bias*hour^9"] = 77;
  EXPECT_EQ(ByName(Named({{"user", "item"}, {"hour", ""}}), columns.batch()), expected);
  EXPECT_EQ(ByName(Named({{"user", "nobody"}}), columns.batch()), originals);
}

TEST(Products, OfAGroupWithItselfTakeEachTwoFeaturesOnce) {
  const NamedColumns columns({{{{"a^1", 2}, {"a^2", 3}, {"a^3", 5}}, 1}});
  Names expected = {{"a^1", 2},     {"a^2", 3},      {"a^3", 5},
                    {"a^1*a^2", 6}, {"a^1*a^3", 10}, {"a^2*a^3", 15}};
  EXPECT_EQ(ByName(Named({{"a", "a"}}, true), columns.batch()), expected);
  expected["a^1*a^1"] = 4;
  expected["a^2*a^2"] = 9;
  expected["a^3*a^3"] = 25;
  EXPECT_EQ(ByName(Named({{"a", "a"}}), columns.batch()), expected);
}

TEST(Products, KnowAGroupWhoseNameBeginsAnothers) {
  const NamedColumns columns({{{{"a^1", 2}, {"ab^1", 3}, {"b^1", 5}}, 1}});
  const Names expected = {{"a^1", 2}, {"ab^1", 3}, {"b^1", 5}, {"a^1*b^1", 10}};
  EXPECT_EQ(ByName(Named({{"b", "a"}}), columns.batch()), expected);
}

TEST(Products, EscapeStarsInNamesAsEveryProductDoes) {
  const NamedColumns columns({{{{"a^*", 2}, {"b^\\", 3}}, 1}});
  const Names expected = {{"a^\\*", 2}, {"b^\\\\", 3}, {"a^\\**b^\\\\", 6}};
  EXPECT_EQ(ByName(Named({{"a", "b"}}), columns.batch()), expected);
}

TEST(Products, NeedNamesInAHashedSpace) {
  const FeatureSpace space = testing::Products(Kind::kHashed, 16, {{"a", "b"}});
  const Columns sparse = Columns().Add({1}, {1}, 1);
  const Columns dense = Columns().AddDense(std::vector<float>(16), 1);
  const ValidationError error = Mapper(space).Begin(sparse.batch());
  EXPECT_EQ(error.code, ValidationCode::kMalformedColumns);
  EXPECT_EQ(error.field, "feature_names");
  EXPECT_EQ(Mapper(space).Begin(dense.batch()).field, "dense_width");
  EXPECT_FALSE(Mapper(space).Begin(Columns().Add({}, {}, 1).batch()));
}

// Against two loops over random rows: sums by slot, and values by name.
TEST(Products, EqualBruteForce) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const std::vector<GroupPair> pairs = {{"g0", "g1"}, {"g2", "g2"}, {"g1", "g3"}, {"", "g0"}};
  for (int n = 0; n < 50; ++n) {
    std::map<std::string, float> row;
    for (int i = 0; i < 25; ++i) {
      const auto group = random() % 6;
      const std::string name = absl::StrCat("f", random() % 30);
      row[group == 5 ? name : absl::StrCat("g", group, "^", name)] = normal(random);
    }
    const NamedColumns columns({NamedExample{{row.begin(), row.end()}, 1}});
    for (const bool interactions_only : {false, true}) {
      Names by_name = row;
      std::map<uint32_t, double> by_slot;
      for (const auto& [name, value] : row) by_slot[NameSlot(name, 64)] += value;
      for (auto a = row.begin(); a != row.end(); ++a) {
        for (auto b = a; b != row.end(); ++b) {
          if (a == b && interactions_only) continue;
          const std::string one(GroupOf(a->first));
          const std::string other(GroupOf(b->first));
          for (const GroupPair& pair : pairs) {
            const bool asked_for = (pair.first == one && pair.second == other) ||
                                   (pair.first == other && pair.second == one);
            if (!asked_for) continue;
            const float product = static_cast<float>(static_cast<double>(a->second) * b->second);
            by_name[absl::StrCat(a->first, "*", b->first)] = product;
            std::vector<uint32_t> slots = {NameSlot(a->first, 64), NameSlot(b->first, 64)};
            std::sort(slots.begin(), slots.end());
            by_slot[ProductSlot(slots, 64)] += product;
          }
        }
      }
      EXPECT_EQ(ByName(Named(pairs, interactions_only), columns.batch()), by_name);
      const auto mapped =
          ByIndex(testing::Products(Kind::kHashed, 64, pairs, interactions_only), columns.batch());
      ASSERT_EQ(mapped.size(), by_slot.size());
      for (const auto& [slot, value] : by_slot) EXPECT_NEAR(mapped.at(slot), value, 1e-5);
    }
  }
}

}  // namespace
}  // namespace perceptrond
