// What a fleet does as one quantity grows: tables on standard output, and panels of the picture.
#pragma once

#include <vector>

#include "tests/bench/fleet/picture.h"

namespace perceptrond::bench::fleet {

// Fits the law on a grid of runs and prints how far off it is. Returns its constant.
double FitOnGrid(bool tiny);

std::vector<Panel> RunStudies(bool tiny, double stale_constant);

}  // namespace perceptrond::bench::fleet
