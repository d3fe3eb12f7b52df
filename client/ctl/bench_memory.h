// Whether this machine has the memory for a load.
#pragma once

#include <cstddef>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

// About what so many streams take: their examples, and the messages that are under way.
double BytesOfLoads(const LoadOptions& load, const MadeRowsOptions& rows, size_t streams);

// "" if that is at most a quarter of this machine's memory; else how much it is, and what takes
// less.
std::string TooMuchMemory(const LoadOptions& load, const MadeRowsOptions& rows, size_t streams);

}  // namespace perceptrond::client
