// Tags of rows that `perceptronctl predict` sends: where a row is in the input, and its label.
#pragma once

#include <cstdint>

#include "client/ctl/prediction.h"
#include "client/row.h"

namespace perceptrond::client {

// The lowest bits hold the label plus 2, or 0 for none.
inline constexpr int kLabelBits = 15;
inline constexpr int kMostLabels = (1 << kLabelBits) - 2;
static_assert(kUnknownClass < kMostLabels);

inline uint64_t TagWithLabel(uint64_t tag, int label) {
  const int bits = label == Row::kNoLabel || label >= kMostLabels ? 0 : label + 2;
  return tag << kLabelBits | static_cast<uint64_t>(bits);
}
inline int LabelOf(uint64_t tag) {
  const auto bits = static_cast<int>(tag & ((1U << kLabelBits) - 1));
  return bits == 0 ? Row::kNoLabel : bits - 2;
}
// Input::tag().
inline uint64_t WithoutLabel(uint64_t tag) { return tag >> kLabelBits; }

}  // namespace perceptrond::client
