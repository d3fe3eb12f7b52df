// What every feature map keeps to, in every space it can have.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "core/vector/kernels.h"
#include "tests/core/features/mapping.h"

namespace perceptrond {
namespace {

using testing::ByIndex;
using testing::ByName;
using testing::Columns;
using testing::NamedColumns;
using testing::NamedExample;
using Kind = FeatureSpace::Kind;

struct Case {
  std::string name;
  FeatureSpace space;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Kind kind : {Kind::kDense, Kind::kHashed, Kind::kNamed}) {
    const std::string in = kind == Kind::kDense    ? "Dense"
                           : kind == Kind::kHashed ? "Hashed"
                                                   : "Named";
    const uint32_t size = kind == Kind::kDense ? 12 : 64;
    for (const bool interactions : {false, true}) {
      const std::string kinds = interactions ? "Interactions" : "";
      for (const uint32_t degree : {2U, 3U, 4U}) {
        cases.push_back({absl::StrCat("Polynomial", degree, kinds, in),
                         testing::Polynomial(kind, size, degree, interactions)});
      }
      if (kind == Kind::kDense) continue;
      cases.push_back({absl::StrCat("Products", kinds, in),
                       testing::Products(kind, size, {{"a", "b"}, {"b", "b"}}, interactions)});
    }
    cases.push_back({absl::StrCat("Fourier", in), testing::Fourier(kind, size, 33, 0.5, 9)});
  }
  return cases;
}

class EveryMap : public ::testing::TestWithParam<Case> {
 protected:
  const FeatureSpace& space() const { return GetParam().space; }
  bool dense() const { return space().kind == Kind::kDense; }

  // Up to twelve features by the names a^0 ... c^3, in the order of their bytes.
  NamedExample Draw() {
    NamedExample example;
    for (const char* group : {"a", "b", "c"}) {
      for (int i = 0; i < 4; ++i) {
        if (random_() % 3 == 0) continue;
        example.features.emplace_back(absl::StrCat(group, "^", i), normal_(random_));
      }
    }
    return example;
  }
  // The same by index, for dense spaces.
  static Columns IndexedColumns(const std::vector<NamedExample>& examples) {
    Columns columns;
    for (const NamedExample& example : examples) {
      std::vector<uint32_t> indices;
      std::vector<float> values;
      for (const auto& [name, value] : example.features) {
        indices.push_back(static_cast<uint32_t>((name[0] - 'a') * 4 + name[2] - '0'));
        values.push_back(value);
      }
      columns.Add(indices, values, 1);
    }
    return columns;
  }
  // What the row maps to, under names in a named space and numbers elsewhere.
  std::map<std::string, float> Map(const Batch& batch, size_t i) const {
    if (space().mapped().kind == Kind::kNamed) return ByName(space(), batch, i);
    std::map<std::string, float> features;
    for (const auto& [index, value] : ByIndex(space(), batch, i))
      features[absl::StrCat(index)] = value;
    return features;
  }
  std::map<std::string, float> MapAlone(const NamedExample& example) const {
    return dense() ? Map(IndexedColumns({example}).batch(), 0)
                   : Map(NamedColumns({example}).batch(), 0);
  }

  std::mt19937 random_{5};
  std::normal_distribution<float> normal_;
};

TEST_P(EveryMap, GivesTheSameRowWhateverBatchItCameInAndWhateverOrderItsNamesWereSentIn) {
  std::vector<NamedExample> examples(20);
  for (NamedExample& example : examples) example = Draw();
  const Columns columns = IndexedColumns(examples);
  const NamedColumns named(examples, {"a", "a^", "b^10", "zzz"});
  const Batch batch = dense() ? columns.batch() : named.batch();
  for (size_t i = 0; i < examples.size(); ++i) {
    NamedExample shuffled = examples[i];
    if (!dense()) std::shuffle(shuffled.features.begin(), shuffled.features.end(), random_);
    EXPECT_EQ(MapAlone(shuffled), Map(batch, i));
  }
}

TEST_P(EveryMap, KeepsItsMemoryButNothingOfTheRowBefore) {
  std::vector<NamedExample> examples(20);
  for (NamedExample& example : examples) example = Draw();
  examples[7].features.clear();
  const Columns columns = IndexedColumns(examples);
  const NamedColumns named(examples);
  Mapper mapper(space());
  ASSERT_FALSE(mapper.Begin(dense() ? columns.batch() : named.batch()));
  const Dictionary dictionary;
  mapper.Resolve(dictionary);
  for (const size_t i : {3U, 7U, 3U, 11U, 7U, 0U, 19U, 3U}) {
    double squared_norm = -1;
    ASSERT_EQ(mapper.Check(i, &squared_norm), ValidationCode::kNone);
    const Row row = mapper.Map(i);
    EXPECT_EQ(SquaredNorm(row), squared_norm);
    const std::map<std::string, float> alone = MapAlone(examples[i]);
    ASSERT_EQ(row.size, alone.size());
    double alone_norm = 0;
    for (const auto& [name, value] : alone) alone_norm += static_cast<double>(value) * value;
    EXPECT_NEAR(squared_norm, alone_norm, 1e-9 * (1 + alone_norm));
    EXPECT_EQ(row.indices == nullptr, space().map.kind == FeatureMap::Kind::kFourier);
  }
}

TEST_P(EveryMap, MapsTheNextBatchAnew) {
  Mapper mapper(space());
  const Dictionary dictionary;
  for (int n = 0; n < 3; ++n) {
    const NamedExample example = Draw();
    const Columns columns = IndexedColumns({example});
    const NamedColumns named({example});
    ASSERT_FALSE(mapper.Begin(dense() ? columns.batch() : named.batch()));
    mapper.Resolve(dictionary);
    double squared_norm = 0;
    ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kNone);
    Mapper fresh(space());
    ASSERT_FALSE(fresh.Begin(dense() ? columns.batch() : named.batch()));
    double expected = 0;
    ASSERT_EQ(fresh.Check(0, &expected), ValidationCode::kNone);
    EXPECT_EQ(squared_norm, expected);
  }
}

TEST_P(EveryMap, KnowsItsExtentAndRefusesOneFeatureTooMany) {
  // Slots enough that no two names share one.
  FeatureSpace space = this->space();
  if (space.kind == Kind::kHashed) space.size = 1U << 20;
  NamedExample example;
  for (const char* group : {"a", "b", "c"}) {
    for (int i = 0; i < 4; ++i) example.features.emplace_back(absl::StrCat(group, "^", i), 1.0F);
  }
  const Columns columns = IndexedColumns({example});
  const NamedColumns named({example});
  const Batch batch = dense() ? columns.batch() : named.batch();
  Mapped mapped;
  const auto expansion = MakeExpansion(space);
  std::vector<absl::string_view> names;
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; batch.names != nullptr && i < batch.names->end(); ++i) {
    names.push_back(batch.names->name(i));
    slots.push_back(i);
  }
  ASSERT_EQ(expansion->Expand({batch.row(0), names, slots}, 10000, mapped), ValidationCode::kNone);
  const uint64_t count = mapped.extent.features;
  if (space.kind == Kind::kNamed && space.mapped().kind == Kind::kNamed) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < mapped.names.size(); ++i) bytes += mapped.names[i].size();
    EXPECT_EQ(mapped.extent.name_bytes, bytes);
  }
  if (space.kind != Kind::kHashed) {
    EXPECT_EQ(mapped.row.size, count);
  }

  double squared_norm = 0;
  Mapper enough(space, count);
  ASSERT_FALSE(enough.Begin(batch));
  EXPECT_EQ(enough.Check(0, &squared_norm), ValidationCode::kNone);
  Mapper too_few(space, count - 1);
  ASSERT_FALSE(too_few.Begin(batch));
  ASSERT_EQ(too_few.Check(0, &squared_norm), ValidationCode::kTooManyFeatures);
  const ValidationError error = too_few.Describe(0, ValidationCode::kTooManyFeatures);
  EXPECT_EQ(error.field, "indices");
  EXPECT_EQ(error.code, ValidationCode::kTooManyFeatures);
  EXPECT_NE(error.description.find(absl::StrCat(count - 1)), std::string::npos);
  EXPECT_EQ(too_few.Map(0).size, 0U);
}

INSTANTIATE_TEST_SUITE_P(Maps, EveryMap, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// A row that would take terabytes: there is no time or memory for it.
TEST(Expansion, RefusesBeforeMemoryIsSpent) {
  std::vector<uint32_t> indices(100000);
  for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
  const Columns columns = Columns().Add(indices, std::vector<float>(indices.size(), 1), 1);
  Mapper mapper(testing::Polynomial(Kind::kHashed, 1U << 20, 4));
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  double squared_norm = 0;
  EXPECT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kTooManyFeatures);
}

TEST(Expansion, RefusesNamesThatTakeTooManyBytes) {
  NamedExample example;
  for (int i = 0; i < 200; ++i)
    example.features.emplace_back(absl::StrCat(1000 + i, std::string(1000, 'x')), 1.0F);
  const NamedColumns columns({example});
  Mapper mapper(testing::Polynomial(Kind::kNamed, 1U << 20, 2));
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  double squared_norm = 0;
  ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kTooManyFeatures);
  EXPECT_NE(mapper.Describe(0, ValidationCode::kTooManyFeatures).description.find("20300 products"),
            std::string::npos);
}

TEST(Expansion, RefusesProductsThatOverflow) {
  const float root = 2e19F;
  const NamedColumns named({{{{"a^1", root}, {"b^1", root}}, 1}, {{{"a^1", 1}}, 1}});
  const Columns dense = Columns().AddDense({root, -root}, 1).AddDense({1, 1}, 1);
  for (const FeatureSpace& space :
       {testing::Polynomial(Kind::kDense, 2, 2), testing::Polynomial(Kind::kDense, 2, 2, true),
        testing::Polynomial(Kind::kHashed, 8, 2), testing::Polynomial(Kind::kNamed, 8, 2),
        testing::Products(Kind::kHashed, 8, {{"a", "b"}}),
        testing::Products(Kind::kNamed, 8, {{"a", "b"}})}) {
    Mapper mapper(space);
    ASSERT_FALSE(mapper.Begin(space.kind == Kind::kDense ? dense.batch() : named.batch()));
    double squared_norm = 0;
    ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kNonFiniteValue);
    const ValidationError error = mapper.Describe(0, ValidationCode::kNonFiniteValue);
    EXPECT_EQ(error.code, ValidationCode::kNonFiniteValue);
    EXPECT_EQ(error.field, "values");
    EXPECT_FALSE(error.position.has_value());
    EXPECT_EQ(mapper.Check(1, &squared_norm), ValidationCode::kNone);
  }
}

TEST(Expansion, DescribesAnErrorOfTheRowItselfByItsPosition) {
  const Columns columns =
      Columns().Add({1, 1}, {1, 1}, 1).Add({0, 1}, {1, std::numeric_limits<float>::quiet_NaN()}, 1);
  Mapper mapper(testing::Polynomial(Kind::kDense, 4, 2));
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  double squared_norm = 0;
  ASSERT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kUnsortedIndices);
  EXPECT_EQ(mapper.Describe(0, ValidationCode::kUnsortedIndices).position, 1U);
  ASSERT_EQ(mapper.Check(1, &squared_norm), ValidationCode::kNonFiniteValue);
  EXPECT_EQ(mapper.Describe(1, ValidationCode::kNonFiniteValue).position, 1U);
}

// As a model does it: names of an update get weights, and then the row finds them.
TEST(Expansion, NamesOfProductsGetWeightsAtTheFirstUpdate) {
  Dictionary dictionary;
  dictionary.Add("a*b");
  const NamedColumns columns({{{{"a", 2}, {"b", 3}}, 1}, {{{"b", 3}}, 1}});
  Mapper mapper(testing::Polynomial(Kind::kNamed, 99, 2));
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  mapper.Resolve(dictionary);
  Row row = mapper.Map(0);
  EXPECT_EQ(std::vector<uint32_t>(row.indices, row.indices + row.size),
            (std::vector<uint32_t>{0, 0, 0, 1, 0}));
  std::vector<absl::string_view> names;
  mapper.UnknownNames(0, names);
  EXPECT_EQ(names, (std::vector<absl::string_view>{"a", "b", "a*a", "b*b"}));
  for (const absl::string_view name : names) dictionary.Add(name);
  mapper.Resolve(dictionary);
  row = mapper.Map(0);
  EXPECT_EQ(std::vector<uint32_t>(row.indices, row.indices + row.size),
            (std::vector<uint32_t>{2, 3, 4, 1, 5}));
  // The names are to be journaled with the row.
  EXPECT_EQ(names.back(), "b*b");
  row = mapper.Map(1);
  EXPECT_EQ(std::vector<uint32_t>(row.indices, row.indices + row.size),
            (std::vector<uint32_t>{3, 5}));
}

// Slots ascend, and the values of one are added in the order in which they came.
TEST(SlotSumTest, AddsUpTheValuesOfASlotInTheirOrder) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  SlotSum sum;
  for (const size_t size : {0, 1, 2, 15, 16, 75, 255, 256, 257, 1000}) {
    for (const uint32_t slots : {4U, 1U << 30}) {
      std::map<uint32_t, float> expected;
      sum.Clear();
      for (size_t i = 0; i < size; ++i) {
        const auto slot = static_cast<uint32_t>(random()) & (slots - 1);
        const float value = normal(random);
        const auto [added, is_new] = expected.emplace(slot, value);
        if (!is_new) added->second += value;
        sum.Add(slot, value);
      }
      const Row row = sum.Sum();
      ASSERT_EQ(row.size, expected.size());
      size_t i = 0;
      for (const auto& [slot, value] : expected) {
        EXPECT_EQ(row.index(i), slot);
        EXPECT_EQ(row.value(i), value);
        ++i;
      }
    }
  }
}

}  // namespace
}  // namespace perceptrond
