// Simulated runs beside the law, as Markdown on standard output.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/fleet/law.h"

namespace perceptrond::bench::fleet {

// Simulates them on all processors; the points are in the order of the options.
std::vector<SimulatedPoint> SimulateAll(const std::vector<FleetOptions>& runs);

// With the rate that streams with a window had.
FleetOptions WithMeasuredRate(const SimulatedPoint& point);

void PrintTable(const std::string& title, const std::vector<SimulatedPoint>& points,
                double stale_constant);

// All figures of one run, a line each.
void PrintRun(const SimulatedPoint& point, double stale_constant);

// What the law expects of a run, of which no more than the error rate is known.
void PrintLaw(const FleetOptions& options, double error_rate, double stale_constant);

// How far the law is off, for each order: the median, the ninetieth percentile and the worst.
void PrintDeviations(const std::vector<SimulatedPoint>& points, double stale_constant);

}  // namespace perceptrond::bench::fleet
