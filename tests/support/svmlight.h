// Reads data sets for the tests. Shares nothing with the product's readers, so that the two check
// each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perceptrond::testing {

struct SvmExample {
  int label = 0;
  // From 0, ascending.
  std::vector<uint32_t> indices;
  std::vector<float> values;
};

struct SvmData {
  std::vector<SvmExample> examples;
  // One more than the largest index.
  uint32_t dimension = 0;
};

// Reads `label index:value ...` lines whose indices count from 1. Throws std::runtime_error, naming
// the line.
SvmData ReadSvmlight(const std::string& path);
// The same with labels as they stand, as numbers of classes.
SvmData ReadSvmlightClasses(const std::string& path);

}  // namespace perceptrond::testing
