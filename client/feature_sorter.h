// FeatureSorter: sorts the features of a row by their indices.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perceptrond::client {

class FeatureSorter {
 public:
  // Sorts `count` indices in place, and the values with them unless `values` is null. O(count) if
  // they ascend or there are at least kRadixCount, else O(count^2).
  void Sort(uint32_t* indices, float* values, size_t count);

 private:
  // Rows shorter than this are sorted by insertion.
  static constexpr size_t kRadixCount = 24;

  // An index above the bits of its value.
  std::vector<uint64_t> features_;
  std::vector<uint64_t> sorted_;
};

}  // namespace perceptrond::client
