// Where the large data sets lie that the project does not carry.
#pragma once

#include <optional>
#include <string>

#include "tests/support/svmlight.h"

namespace perceptrond::testing {

// The path of a data set, in the directory that the environment names in PERCEPTROND_DATA, else in the one
// that the build was configured with. Nothing if it is not there: a test that needs it skips.
std::optional<std::string> FindSharedData(const std::string& name);

}  // namespace perceptrond::testing

// Reads a data set in svmlight form into `variable`; without it the test is skipped.
#define LOAD_OR_SKIP(variable, name)                                         \
  const auto variable##_path = ::perceptrond::testing::FindSharedData(name); \
  if (!variable##_path)                                                      \
    GTEST_SKIP() << name << " is not there: set PERCEPTROND_DATA to the"     \
                 << " directory of the shared data sets";                    \
  const auto variable = ::perceptrond::testing::ReadSvmlight(*variable##_path)
