// Where a model's examples live, how features find their weights, and Phi between the two.
#pragma once

#include <cstdint>

#include "core/features/feature_map.h"
#include "core/vector/name.h"

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
  // Of a feature's name, which is not empty.
  static constexpr size_t kMaxNameBytes = perceptrond::kMaxNameBytes;

  Kind kind = Kind::kDense;
  // kDense: the dimension. kHashed: 2^bits. kNamed: the most names.
  uint32_t size = 0;
  // Phi, applied to every example. CheckFeatureMap says which the space can have.
  FeatureMap map = {};

  // The space that Phi maps to, where the weights live: the same one, but that a polynomial makes a
  // dense space wider, and that Fourier features are dense whatever they were made from. Its own
  // map is the identity. O(1).
  FeatureSpace mapped() const;

  // How many weights a model has at revision 0. In a named space weight 0 stands for every name
  // that has none yet: it is always zero, so unknown names score nothing without a branch.
  uint32_t initial_weights() const;
};

}  // namespace perceptrond
