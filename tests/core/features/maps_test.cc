// Every feature map, in every space it can have, beside a naive map, which multiplies out what the API
// says; polynomials and products of groups.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/features/names.h"
#include "core/features/polynomial.h"
#include "core/features/products.h"
#include "core/vector/kernels.h"
#include "tests/core/features/mapping.h"

namespace perceptrond::maps_test {
namespace {

using testing::ByIndex;
using testing::ByName;
using testing::Columns;
using testing::NamedColumns;
using testing::NamedExample;
using testing::Values;
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
      cases.push_back(
          {absl::StrCat("Products", kinds, in),
           testing::Products(kind, size, {{"a", "b"}, {"c", "c"}, {"", "ab"}, {"x", "a"}},
                             interactions)});
    }
    cases.push_back({absl::StrCat("Fourier", in), testing::Fourier(kind, size, 33, 0.5, 9)});
  }
  return cases;
}

// A feature by its name, or in a dense space by its index written out.
using Features = std::vector<std::pair<std::string, float>>;

std::string Escaped(const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '*' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// The sets of features whose products the map has, by their positions: ascending within one.
std::vector<std::vector<size_t>> Monomials(const FeatureMap& map, const Features& features) {
  std::vector<std::vector<size_t>> all;
  for (size_t i = 0; i < features.size(); ++i) all.push_back({i});
  if (map.kind == FeatureMap::Kind::kProducts) {
    for (size_t i = 0; i < features.size(); ++i) {
      for (size_t j = map.interactions_only ? i + 1 : i; j < features.size(); ++j) {
        const absl::string_view one = GroupOf(features[i].first);
        const absl::string_view other = GroupOf(features[j].first);
        for (const GroupPair& pair : map.pairs) {
          if ((pair.first == one && pair.second == other) ||
              (pair.first == other && pair.second == one))
            all.push_back({i, j});
        }
      }
    }
    return all;
  }
  for (size_t begin = 0; begin < all.size(); ++begin) {
    if (all[begin].size() == map.degree) break;
    for (size_t i = all[begin].back() + (map.interactions_only ? 1 : 0); i < features.size(); ++i) {
      std::vector<size_t> longer = all[begin];
      longer.push_back(i);
      all.push_back(longer);
    }
  }
  return all;
}

// The mapped features: by name in a named space, by slot or index elsewhere.
std::map<std::string, double> Naive(const FeatureSpace& space, Features features) {
  std::vector<uint32_t> places;
  if (space.kind == Kind::kHashed && space.map.kind == FeatureMap::Kind::kPolynomial) {
    // It takes the slots for its features.
    std::map<uint32_t, float> slots;
    for (const auto& [name, value] : features) slots[NameSlot(name, space.size)] += value;
    features.clear();
    for (const auto& [slot, value] : slots) {
      features.emplace_back(absl::StrCat(slot), value);
      places.push_back(slot);
    }
  } else {
    for (const auto& [name, value] : features)
      places.push_back(space.kind == Kind::kDense ? static_cast<uint32_t>(std::stoul(name))
                                                  : NameSlot(name, space.size));
  }
  std::map<std::string, double> mapped;
  for (const std::vector<size_t>& monomial : Monomials(space.map, features)) {
    // Rounded once.
    double product = 1;
    std::vector<std::string> names;
    std::vector<uint32_t> factors;
    for (const size_t i : monomial) {
      names.push_back(monomial.size() == 1 && space.kind != Kind::kNamed
                          ? features[i].first
                          : Escaped(features[i].first));
      factors.push_back(places[i]);
    }
    for (auto i = monomial.rbegin(); i != monomial.rend(); ++i) product *= features[*i].second;
    std::sort(factors.begin(), factors.end());
    std::string key = absl::StrJoin(names, "*");
    if (space.kind == Kind::kDense)
      key = absl::StrCat(MonomialIndex(factors, space.size, space.map));
    if (space.kind == Kind::kHashed)
      key = absl::StrCat(factors.size() == 1 ? factors[0] : ProductSlot(factors, space.size));
    mapped[key] += static_cast<float>(product);
  }
  return mapped;
}

class EveryMap : public ::testing::TestWithParam<Case> {
 protected:
  const FeatureSpace& space() const { return GetParam().space; }
  bool dense() const { return space().kind == Kind::kDense; }

  // Up to twelve features by the names a^0 ... a^3, ab^0 ..., c^0 ..., in the order of their bytes.
  NamedExample Draw() {
    NamedExample example;
    for (const char* group : {"a", "ab", "c"}) {
      for (int i = 0; i < 4; ++i) {
        if (random_() % 3 == 0) continue;
        example.features.emplace_back(absl::StrCat(group, "^", i), normal_(random_));
      }
    }
    return example;
  }
  // By index, for dense spaces.
  static Columns IndexedColumns(const std::vector<NamedExample>& examples) {
    Columns columns;
    for (const NamedExample& example : examples) {
      std::vector<uint32_t> indices;
      std::vector<float> values;
      for (const auto& [name, value] : example.features) {
        indices.push_back(static_cast<uint32_t>(4 * (name[0] == 'c'   ? 2
                                                     : name[1] == 'b' ? 1
                                                                      : 0) +
                                                name.back() - '0'));
        values.push_back(value);
      }
      columns.Add(indices, values, 1);
    }
    return columns;
  }
  // The mapped row, under names in a named space and numbers elsewhere.
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

TEST_P(EveryMap, IsTheNaiveOne) {
  if (space().map.kind == FeatureMap::Kind::kFourier) return;
  for (int n = 0; n < 30; ++n) {
    NamedExample example = Draw();
    if (n == 0) example.features.clear();
    Features features = example.features;
    if (dense()) {
      const Columns columns = IndexedColumns({example});
      const Row row = columns.batch().row(0);
      for (size_t i = 0; i < row.size; ++i)
        features[i] = {absl::StrCat(row.index(i)), row.value(i)};
    } else {
      // Names that need to be told from products.
      if (n % 2 == 0) features.insert(features.end(), {{"x^*", 2.5F}, {"x^\\", -3}});
      if (n % 2 == 0) example.features = features;
    }
    const std::map<std::string, double> expected = Naive(space(), features);
    const std::map<std::string, float> mapped = MapAlone(example);
    ASSERT_EQ(mapped.size(), expected.size());
    for (const auto& [name, value] : expected) {
      // The values of one slot are added in float32.
      if (space().kind == Kind::kHashed) {
        EXPECT_NEAR(mapped.at(name), value, 1e-5 * (1 + std::abs(value))) << name;
      } else {
        EXPECT_EQ(mapped.at(name), value) << name;
      }
    }
  }
}

TEST_P(EveryMap, GivesTheSameRowWhateverBatchAndOrderItCameInAndKeepsNothingOfTheRowBefore) {
  std::vector<NamedExample> examples(20);
  for (NamedExample& example : examples) example = Draw();
  examples[7].features.clear();
  const Columns columns = IndexedColumns(examples);
  const NamedColumns named(examples, {"a", "a^", "ab^10", "zzz"});
  const Batch batch = dense() ? columns.batch() : named.batch();
  for (size_t i = 0; i < examples.size(); ++i) {
    NamedExample shuffled = examples[i];
    if (!dense()) std::shuffle(shuffled.features.begin(), shuffled.features.end(), random_);
    EXPECT_EQ(MapAlone(shuffled), Map(batch, i));
  }
  Mapper mapper(space());
  ASSERT_FALSE(mapper.Begin(batch));
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

TEST_P(EveryMap, RefusesOneFeatureTooMany) {
  // Slots enough that no two names share one.
  FeatureSpace space = this->space();
  if (space.kind == Kind::kHashed) space.size = 1U << 20;
  NamedExample example;
  for (const char* group : {"a", "ab", "c"}) {
    for (int i = 0; i < 4; ++i) example.features.emplace_back(absl::StrCat(group, "^", i), 1.0F);
  }
  const uint64_t count = space.map.kind == FeatureMap::Kind::kFourier
                             ? space.map.dimension
                             : Monomials(space.map, example.features).size();
  const Columns columns = IndexedColumns({example});
  const NamedColumns named({example});
  const Batch batch = dense() ? columns.batch() : named.batch();
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
  EXPECT_EQ(mapper.Check(0, &squared_norm), ValidationCode::kTooManyFeatures);
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

// Every monomial's factors, found by counting through all tuples: ascending within one, then by
// degree, then by the last factor, the one before it, and so on.
std::vector<std::vector<uint32_t>> AllMonomials(uint32_t dimension, const FeatureMap& map) {
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t degree = 1; degree <= map.degree; ++degree) {
    std::vector<uint32_t> tuple(degree);
    const auto tuples = static_cast<uint64_t>(std::pow(dimension, degree));
    for (uint64_t n = 0; n < tuples; ++n) {
      uint64_t rest = n;
      // The first digit changes fastest.
      for (uint32_t& factor : tuple) {
        factor = static_cast<uint32_t>(rest % dimension);
        rest /= dimension;
      }
      const bool ascends = map.interactions_only
                               ? std::adjacent_find(tuple.begin(), tuple.end(),
                                                    std::greater_equal<>()) == tuple.end()
                               : std::is_sorted(tuple.begin(), tuple.end());
      if (ascends) all.push_back(tuple);
    }
  }
  return all;
}

struct Shape {
  uint32_t dimension;
  uint32_t degree;
  bool interactions_only;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << "dimension " << shape.dimension << " degree " << shape.degree
       << (shape.interactions_only ? " interactions" : "");
}

class PolynomialOf : public ::testing::TestWithParam<Shape> {};

TEST_P(PolynomialOf, HasEveryMonomialAtItsDocumentedIndex) {
  const Shape& shape = GetParam();
  const FeatureSpace space =
      testing::Polynomial(Kind::kDense, shape.dimension, shape.degree, shape.interactions_only);
  const auto monomials = AllMonomials(space.size, space.map);
  ASSERT_EQ(space.mapped().size, monomials.size());
  ASSERT_EQ(MonomialCount(space.size, space.map), monomials.size());
  std::mt19937 random(shape.dimension * 8 + shape.degree);
  std::normal_distribution<float> normal;
  std::vector<float> row(shape.dimension);
  for (float& value : row) value = normal(random);
  const std::vector<float> mapped = Values(space, Columns().AddDense(row, 1).batch());
  for (uint32_t index = 0; index < monomials.size(); ++index) {
    EXPECT_EQ(MonomialIndex(monomials[index], space.size, space.map), index);
    EXPECT_EQ(MonomialFactors(index, space.size, space.map), monomials[index]);
    double product = 1;
    for (auto factor = monomials[index].rbegin(); factor != monomials[index].rend(); ++factor)
      product *= row[*factor];
    EXPECT_EQ(mapped[index], static_cast<float>(product));
  }
}

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (uint32_t dimension = 1; dimension <= 6; ++dimension) {
    for (uint32_t degree = 2; degree <= 4; ++degree) {
      shapes.push_back({dimension, degree, false});
      shapes.push_back({dimension, degree, true});
    }
  }
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(Shapes, PolynomialOf, ::testing::ValuesIn(Shapes()));

// As documented: the hash of its factors' slots, four bytes each.
TEST(Polynomial, InAHashedSpaceHashesItsFactorsSlots) {
  constexpr uint32_t kSlots = 1U << 20;
  const uint32_t pair[] = {5, 70000};
  EXPECT_EQ(ProductSlot(pair, kSlots),
            HashName(absl::string_view("\x05\0\0\0\x70\x11\x01\0", 8)) & (kSlots - 1));
  const Columns columns = Columns().Add({5, 70000}, {2, 3}, 1);
  EXPECT_EQ(ByIndex(testing::Polynomial(Kind::kHashed, kSlots, 2), columns.batch())
                .at(ProductSlot(pair, kSlots)),
            6);
}

TEST(GroupOf, IsWhatStandsBeforeTheFirstCircumflex) {
  EXPECT_EQ(GroupOf("user^alice"), "user");
  EXPECT_EQ(GroupOf("user^a^b"), "user");
  EXPECT_EQ(GroupOf("alice"), "");
  EXPECT_EQ(GroupOf("^alice"), "");
  EXPECT_EQ(GroupOf("user^"), "user");
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

}  // namespace
}  // namespace perceptrond::maps_test
