// Whether this machine has the memory for a load.
#pragma once

#include <cstddef>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

// "" if the examples of so many streams and their messages under way take about a quarter of this
// machine's memory at most; else how much they take, and what takes less.
std::string TooMuchMemory(const LoadOptions& load, const MadeRowsOptions& rows, size_t streams);

}  // namespace perceptrond::client
