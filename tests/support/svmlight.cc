#include "tests/support/svmlight.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace perceptrond::testing {
namespace {

SvmExample ParseLine(const std::string& line, bool classes) {
  SvmExample example;
  char* at = nullptr;
  example.label = static_cast<int>(std::strtol(line.c_str(), &at, 10));
  if (!classes) example.label = example.label > 0 ? 1 : -1;
  while (true) {
    char* colon = nullptr;
    const unsigned long index = std::strtoul(at, &colon, 10);
    if (colon == at) return example;
    if (*colon != ':' || index == 0) throw std::runtime_error("not index:value: " + line);
    example.indices.push_back(static_cast<uint32_t>(index - 1));
    example.values.push_back(std::strtof(colon + 1, &at));
  }
}

SvmData Read(const std::string& path, bool classes) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  SvmData data;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    data.examples.push_back(ParseLine(line, classes));
    const std::vector<uint32_t>& indices = data.examples.back().indices;
    if (!indices.empty()) data.dimension = std::max(data.dimension, indices.back() + 1);
  }
  return data;
}

}  // namespace

SvmData ReadSvmlight(const std::string& path) { return Read(path, false); }

SvmData ReadSvmlightClasses(const std::string& path) { return Read(path, true); }

}  // namespace perceptrond::testing
