// Features in a hashed space: what shares a slot adds up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond {

// The slot of a product among `slots`, a power of two: the low bits of XXH3-64 over its factors'
// own slots, which ascend, each as four bytes, the least first. So a product finds its slot alike
// from names and from indices. At least two factors. O(factors).
uint32_t ProductSlot(std::span<const uint32_t> factors, uint32_t slots);

// Gathers features by slot, in any order. Keeps its memory. Not thread-safe.
class SlotSum {
 public:
  void Clear() { features_.clear(); }
  void Reserve(size_t features) { features_.reserve(features); }
  void Add(uint32_t slot, float value) { features_.push_back({slot, value}); }
  // What was added, slots ascending. Values of one slot are summed in the order they were added; a
  // sum may leave float32. The view holds until the next call. O(n log n).
  Row Sum();

 private:
  struct Feature {
    uint32_t slot;
    float value;
  };
  std::vector<Feature> features_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

}  // namespace perceptrond
