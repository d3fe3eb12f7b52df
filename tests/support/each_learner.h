// Each learner of the catalogue, and each with each space, as the parameters of tests.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond::testing {

inline std::vector<const CatalogueEntry*> EachLearner() {
  std::vector<const CatalogueEntry*> learners;
  for (const CatalogueEntry& entry : Catalogue()) learners.push_back(&entry);
  return learners;
}

// For SetLearner.
inline std::vector<std::string> LearnerNames() {
  std::vector<std::string> names = LogisticWithSteps();
  for (const CatalogueEntry& entry : Catalogue()) names.emplace_back(entry.name);
  return names;
}

using SpaceAndLearner = std::tuple<Space, const CatalogueEntry*>;

inline auto EachSpaceAndLearner() {
  return ::testing::Combine(::testing::Values(Space::kDense, Space::kHashed, Space::kNamed),
                            ::testing::ValuesIn(EachLearner()));
}

inline std::string NameOf(const ::testing::TestParamInfo<SpaceAndLearner>& info) {
  return SpaceName(std::get<0>(info.param)) + "_" +
         TestName(std::string(std::get<1>(info.param)->name));
}

}  // namespace perceptrond::testing
