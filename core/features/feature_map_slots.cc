#include "core/features/feature_map_slots.h"

#include <algorithm>
#include <array>

#include "core/features/feature_map.h"
#include "core/features/hashing.h"

namespace perceptrond {

uint32_t ProductSlot(std::span<const uint32_t> factors, uint32_t slots) {
  std::array<char, 4 * FeatureMap::kMaxDegree> bytes;
  size_t size = 0;
  for (const uint32_t factor : factors) {
    for (int shift = 0; shift < 32; shift += 8) bytes[size++] = static_cast<char>(factor >> shift);
  }
  return NameSlot({bytes.data(), size}, slots);
}

Row SlotSum::Sum() {
  std::stable_sort(features_.begin(), features_.end(),
                   [](const Feature& a, const Feature& b) { return a.slot < b.slot; });
  indices_.clear();
  values_.clear();
  for (const Feature& feature : features_) {
    if (!indices_.empty() && indices_.back() == feature.slot) {
      values_.back() += feature.value;
    } else {
      indices_.push_back(feature.slot);
      values_.push_back(feature.value);
    }
  }
  return Row{indices_.empty() ? kNoIndices : indices_.data(), values_.data(), indices_.size()};
}

}  // namespace perceptrond
