// A row of a batch that was refused, and why.
#pragma once

#include <cstdint>

#include "core/vector/check.h"

namespace perceptrond {

struct RowError {
  uint32_t row = 0;
  ValidationError error;
};

}  // namespace perceptrond
