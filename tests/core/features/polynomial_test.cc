#include "core/features/polynomial.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "core/features/names.h"
#include "core/learner/catalogue.h"
#include "tests/core/features/mapping.h"

namespace perceptrond {
namespace {

using testing::ByIndex;
using testing::ByName;
using testing::Columns;
using testing::NamedColumns;
using testing::Values;
using Kind = FeatureSpace::Kind;

FeatureSpace Space(Kind kind, uint32_t size, uint32_t degree, bool interactions_only = false) {
  return testing::Polynomial(kind, size, degree, interactions_only);
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

class PolynomialOf : public ::testing::TestWithParam<Shape> {
 protected:
  FeatureSpace space() const {
    return Space(Kind::kDense, GetParam().dimension, GetParam().degree,
                 GetParam().interactions_only);
  }
  std::vector<float> Draw() {
    std::vector<float> row(GetParam().dimension);
    for (float& value : row) value = normal_(random_);
    return row;
  }

  std::mt19937 random_{GetParam().dimension * 8 + GetParam().degree};
  std::normal_distribution<float> normal_;
};

TEST_P(PolynomialOf, HasEveryMonomialAtItsDocumentedIndex) {
  const FeatureSpace space = this->space();
  const auto monomials = AllMonomials(space.size, space.map);
  ASSERT_EQ(space.mapped().size, monomials.size());
  ASSERT_EQ(MonomialCount(space.size, space.map), monomials.size());
  const std::vector<float> row = Draw();
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

// e_k or h_k of u, from the generating functions: the products of (1 + u_i t), or of 1 / (1 - u_i
// t).
TEST_P(PolynomialOf, HasTheKernelThatItsBannerStates) {
  const FeatureSpace space = this->space();
  for (int n = 0; n < 20; ++n) {
    const std::vector<float> x = Draw();
    const std::vector<float> z = Draw();
    std::vector<double> coefficients(space.map.degree + 1);
    coefficients[0] = 1;
    for (uint32_t i = 0; i < space.size; ++i) {
      const double u = static_cast<double>(x[i]) * z[i];
      if (space.map.interactions_only) {
        for (uint32_t k = space.map.degree; k > 0; --k) coefficients[k] += u * coefficients[k - 1];
      } else {
        for (uint32_t k = 1; k <= space.map.degree; ++k) coefficients[k] += u * coefficients[k - 1];
      }
    }
    double kernel = 0;
    double scale = 1;
    for (uint32_t k = 1; k <= space.map.degree; ++k) kernel += coefficients[k];
    const std::vector<float> phi_x = Values(space, Columns().AddDense(x, 1).batch());
    const std::vector<float> phi_z = Values(space, Columns().AddDense(z, 1).batch());
    double inner = 0;
    for (size_t i = 0; i < phi_x.size(); ++i) {
      const double term = static_cast<double>(phi_x[i]) * phi_z[i];
      inner += term;
      scale += std::abs(term);
    }
    EXPECT_NEAR(inner, kernel, 1e-6 * scale);
  }
}

TEST_P(PolynomialOf, TakesSparseRowsAsDenseOnes) {
  std::vector<float> row = Draw();
  Columns sparse;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (i % 3 == 1) row[i] = 0;
    if (row[i] == 0) continue;
    indices.push_back(i);
    values.push_back(row[i]);
  }
  sparse.Add(indices, values, 1);
  const std::vector<float> from_dense = Values(space(), Columns().AddDense(row, 1).batch());
  EXPECT_EQ(Values(space(), sparse.batch()), from_dense);
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

TEST(Polynomial, OfTwoFeaturesByHand) {
  const Columns columns = Columns().AddDense({2, 3}, 1);
  EXPECT_EQ(Values(Space(Kind::kDense, 2, 2), columns.batch()),
            (std::vector<float>{2, 3, 4, 6, 9}));
  EXPECT_EQ(Values(Space(Kind::kDense, 2, 3), columns.batch()),
            (std::vector<float>{2, 3, 4, 6, 9, 8, 12, 18, 27}));
  EXPECT_EQ(Values(Space(Kind::kDense, 2, 2, true), columns.batch()),
            (std::vector<float>{2, 3, 6}));
}

TEST(Polynomial, OfASparseRowHasOnlyWhatItsFeaturesMake) {
  const Columns columns = Columns().Add({1, 1000}, {2, 3}, 1);
  // d = 2000: squares begin at 2000, and (1000, 1000) is at 2000 + C(1000, 1) + C(1001, 2).
  const std::map<uint32_t, float> expected = {
      {1, 2}, {1000, 3}, {2000 + 2, 4}, {2000 + 1 + 500500, 6}, {2000 + 1000 + 500500, 9}};
  EXPECT_EQ(ByIndex(Space(Kind::kDense, 2000, 2), columns.batch()), expected);
}

TEST(Polynomial, OfARowWithoutFeaturesHasNone) {
  const Columns columns = Columns().Add({}, {}, 1);
  for (const Kind kind : {Kind::kDense, Kind::kHashed})
    EXPECT_TRUE(ByIndex(Space(kind, 8, 3), columns.batch()).empty());
  EXPECT_TRUE(ByName(Space(Kind::kNamed, 8, 3), columns.batch()).empty());
}

TEST(Polynomial, InAHashedSpaceHashesItsFactorsSlots) {
  constexpr uint32_t kSlots = 1U << 20;
  const uint32_t pair[] = {5, 70000};
  const uint32_t square[] = {5, 5};
  EXPECT_EQ(ProductSlot(pair, kSlots),
            HashName(absl::string_view("\x05\0\0\0\x70\x11\x01\0", 8)) & (kSlots - 1));
  const std::map<uint32_t, float> mapped =
      ByIndex(Space(Kind::kHashed, kSlots, 2), Columns().Add({5, 70000}, {2, 3}, 1).batch());
  EXPECT_EQ(mapped.size(), 5U);
  EXPECT_EQ(mapped.at(5), 2);
  EXPECT_EQ(mapped.at(70000), 3);
  EXPECT_EQ(mapped.at(ProductSlot(square, kSlots)), 4);
  EXPECT_EQ(mapped.at(ProductSlot(pair, kSlots)), 6);
}

TEST(Polynomial, InAHashedSpaceTakesNamesSlotsAndDenseRowsAlike) {
  const FeatureSpace space = Space(Kind::kHashed, 16, 3);
  const NamedColumns named({{{{"a", 2}, {"b", -1}, {"c", 0.5F}, {"d", 4}, {"e", 1}}, 1}});
  std::map<uint32_t, float> slots;
  std::vector<float> full(16);
  for (const auto& [name, value] :
       std::map<std::string, float>{{"a", 2.F}, {"b", -1.F}, {"c", 0.5F}, {"d", 4.F}, {"e", 1.F}}) {
    slots[NameSlot(name, 16)] += value;
    full[NameSlot(name, 16)] += value;
  }
  std::vector<uint32_t> indices;
  std::vector<float> values;
  for (const auto& [slot, value] : slots) {
    indices.push_back(slot);
    values.push_back(value);
  }
  const auto expected = ByIndex(space, named.batch());
  EXPECT_EQ(ByIndex(space, Columns().Add(indices, values, 1).batch()), expected);
  EXPECT_EQ(ByIndex(space, Columns().AddDense(full, 1).batch()), expected);
}

TEST(Polynomial, InANamedSpaceNamesProductsByTheirFactors) {
  const NamedColumns columns({{{{"b", 3}, {"a", 2}}, 1}});
  EXPECT_EQ(ByName(Space(Kind::kNamed, 99, 3), columns.batch()),
            (std::map<std::string, float>{{"a", 2},
                                          {"b", 3},
                                          {"a*a", 4},
                                          {"a*b", 6},
                                          {"b*b", 9},
                                          {"a*a*a", 8},
                                          {"a*a*b", 12},
                                          {"a*b*b", 18},
                                          {"b*b*b", 27}}));
  EXPECT_EQ(ByName(Space(Kind::kNamed, 99, 2, true), columns.batch()),
            (std::map<std::string, float>{{"a", 2}, {"b", 3}, {"a*b", 6}}));
}

TEST(Polynomial, NamesThatHoldAStarAreNotTakenForProducts) {
  const NamedColumns columns({{{{"a", 2}, {"a*b", 5}, {"b", 3}, {"\\", 7}}, 1}});
  const std::map<std::string, float> mapped =
      ByName(Space(Kind::kNamed, 99, 2, true), columns.batch());
  EXPECT_EQ(mapped.size(), 10U);
  EXPECT_EQ(mapped.at("a*b"), 6);
  EXPECT_EQ(mapped.at("a\\*b"), 5);
  EXPECT_EQ(mapped.at("a*a\\*b"), 10);
  EXPECT_EQ(mapped.at("\\\\*a"), 14);
}

TEST(Polynomial, RoundsAProductOnce) {
  const float third = 1.0F / 3;
  const Columns columns = Columns().AddDense({third, 3.1F, 7.7F}, 1);
  const double exact = static_cast<double>(7.7F) * static_cast<double>(3.1F) * third;
  EXPECT_EQ(Values(Space(Kind::kDense, 3, 3, true), columns.batch())[6], static_cast<float>(exact));
}

// XOR, worked out: 4 updates, the second pass has none, theta = (0, 0, 4), offset 0.
TEST(Polynomial, MakesXorSeparable) {
  const FeatureSpace space = Space(Kind::kDense, 2, 2, true);
  const Columns columns = Columns()
                              .AddDense({-1, -1}, 1)
                              .AddDense({1, 1}, 1)
                              .AddDense({-1, 1}, -1)
                              .AddDense({1, -1}, -1);
  const std::unique_ptr<Learner> learner = MakeLearner(LearnerSettings(), space.initial_weights());
  Mapper mapper(space);
  ASSERT_FALSE(mapper.Begin(columns.batch()));
  std::vector<int> updates(2);
  for (int& in_pass : updates) {
    for (size_t i = 0; i < 4; ++i) {
      double squared_norm = 0;
      ASSERT_EQ(mapper.Check(i, &squared_norm), ValidationCode::kNone);
      const Row row = mapper.Map(i);
      const int32_t label = columns.batch().labels[i];
      const Evaluation evaluation = learner->Evaluate(row, label);
      if (!evaluation.mistake) continue;
      learner->Update(row, {label}, evaluation);
      ++in_pass;
    }
  }
  EXPECT_EQ(updates, (std::vector<int>{4, 0}));
  const Hypothesis hypothesis = learner->feature_weights()->MakeHypothesis(0, 8);
  EXPECT_EQ(hypothesis.weights, (FloatArray{0, 0, 4}));
  EXPECT_EQ(hypothesis.bias, 0);
}

}  // namespace
}  // namespace perceptrond
