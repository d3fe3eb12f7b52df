// FeatureSorter: sorts the features of rows by their indices.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

class FeatureSorter {
 public:
  // Sorts each sparse or named row of *columns. The indices of a row must be distinct.
  void SortRows(perceptron::v1::ExampleColumns* columns);
  // Sorts `count` indices in place, and the values with them unless `values` is null. O(count) if
  // they ascend or there are at least kRadixCount, else O(count^2).
  void Sort(uint32_t* indices, float* values, size_t count);

 private:
  // Rows shorter than this are sorted by insertion.
  static constexpr size_t kRadixCount = 24;

  void SortDistinct(uint32_t* indices, float* values, size_t count);

  // An index above the bits of its value.
  std::vector<uint64_t> features_;
  std::vector<uint64_t> sorted_;
  // Of short rows.
  std::vector<uint32_t> ranks_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

}  // namespace perceptrond::client
