// A row of a batch that was refused, and why.
#pragma once

#include <cstdint>

#include "core/vector/check.h"

namespace perceptrond {

struct RefusedRow {
  uint32_t row = 0;
  Finding finding;
};

}  // namespace perceptrond
