// Where a model's examples live: how wide its weights are and how features find them.
#pragma once

#include <cstdint>

namespace perceptrond {

struct FeatureSpace {
  enum class Kind : uint8_t {
    // Vectors of a fixed dimension, addressed by index.
    kDense,
    // 2^bits slots, addressed by index or by hashed name.
    kHashed,
    // One weight a name, from when an update first needs it.
    kNamed,
  };

  static constexpr uint32_t kMaxBits = 28;
  static constexpr uint32_t kMaxFeatures = 1U << kMaxBits;
  static constexpr uint32_t kDefaultCap = 1U << 20;

  Kind kind = Kind::kDense;
  // kDense: the dimension. kHashed: 2^bits. kNamed: the most names.
  uint32_t size = 0;

  // How many weights a model has at revision 0. In a named space weight 0 stands for every name
  // that has none yet: it is always zero, so unknown names score nothing without a branch.
  uint32_t initial_weights() const { return kind == Kind::kNamed ? 1 : size; }
};

}  // namespace perceptrond
