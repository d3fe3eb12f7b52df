// Rows after Phi, in a form that tests can compare.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/features/mapper.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond::testing {

inline FeatureSpace Polynomial(FeatureSpace::Kind kind, uint32_t size, uint32_t degree,
                               bool interactions_only = false) {
  FeatureSpace space{kind, size};
  space.map.kind = FeatureMap::Kind::kPolynomial;
  space.map.degree = degree;
  space.map.interactions_only = interactions_only;
  return space;
}

inline FeatureSpace Products(FeatureSpace::Kind kind, uint32_t size, std::vector<GroupPair> pairs,
                             bool interactions_only = false) {
  FeatureSpace space{kind, size};
  space.map.kind = FeatureMap::Kind::kProducts;
  space.map.pairs = std::move(pairs);
  space.map.interactions_only = interactions_only;
  return space;
}

inline FeatureSpace Fourier(FeatureSpace::Kind kind, uint32_t size, uint32_t dimension,
                            double gamma, uint64_t seed) {
  FeatureSpace space{kind, size};
  space.map.kind = FeatureMap::Kind::kFourier;
  space.map.dimension = dimension;
  space.map.gamma = gamma;
  space.map.seed = seed;
  return space;
}

// Row i after the map, by index. Fails the test on a fault, or on a row that breaks the invariants.
inline std::map<uint32_t, float> ByIndex(const FeatureSpace& space, const Batch& batch,
                                         size_t i = 0) {
  Mapper mapper(space);
  EXPECT_FALSE(mapper.Begin(batch));
  double squared_norm = 0;
  EXPECT_EQ(mapper.Check(i, &squared_norm), ValidationCode::kNone);
  const Row row = mapper.Map(i);
  double checked_norm = 0;
  EXPECT_EQ(CheckRow(row, space.mapped().size, FeatureSpace::kMaxFeatures, &checked_norm),
            ValidationCode::kNone);
  EXPECT_EQ(checked_norm, squared_norm);
  std::map<uint32_t, float> features;
  for (size_t j = 0; j < row.size; ++j) features[row.index(j)] = row.value(j);
  EXPECT_EQ(features.size(), row.size);
  return features;
}

// Row i after the map of a named space, by name.
inline std::map<std::string, float> ByName(const FeatureSpace& space, const Batch& batch,
                                           size_t i = 0) {
  Mapper mapper(space);
  EXPECT_FALSE(mapper.Begin(batch));
  const Dictionary dictionary;
  mapper.Resolve(dictionary);
  double squared_norm = 0;
  EXPECT_EQ(mapper.Check(i, &squared_norm), ValidationCode::kNone);
  const Row row = mapper.Map(i);
  std::vector<absl::string_view> names;
  mapper.UnknownNames(i, names);
  EXPECT_EQ(names.size(), row.size);
  std::map<std::string, float> features;
  for (size_t j = 0; j < row.size; ++j) features[std::string(names[j])] = row.value(j);
  EXPECT_EQ(features.size(), row.size);
  return features;
}

// Every value of a row that maps to a dense space, in its order.
inline std::vector<float> Values(const FeatureSpace& space, const Batch& batch, size_t i = 0) {
  std::vector<float> values(space.mapped().size);
  for (const auto& [index, value] : ByIndex(space, batch, i)) values[index] = value;
  return values;
}

}  // namespace perceptrond::testing
