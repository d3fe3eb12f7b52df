// Reads the figures that the metrics export from the store and the disk.
#pragma once

#include <cstddef>
#include <vector>

#include "server/config/options.h"
#include "server/metrics/stats.h"

namespace perceptrond {

class InFlightMemory;
class Store;

// The figures of at most `limit` models, in the order of their names; in a fleet, of those in memory.
// Loads none. Any thread.
std::vector<ModelMetrics> CollectModels(Store& store, size_t limit);

// Any thread.
ServerStats CollectServer(Store& store, const InFlightMemory& memory,
                          const Connections& connections, const Options& options);

}  // namespace perceptrond
