// Tables of what a fleet does beside averaging of weights and beside models on one replica each.
#pragma once

#include "tests/bench/fleet/picture.h"

namespace perceptrond::bench::fleet {

// Returns the panel of updates on separable rows by replicas.
Panel CompareWithMixing(bool tiny);
void CompareWithSharding();

}  // namespace perceptrond::bench::fleet
