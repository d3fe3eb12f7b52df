// Measurements of ours beside their references.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace perceptrond::bench {

enum class Goal { kAtLeast, kAtMost };

// One line of the table.
struct Figure {
  std::string name;
  std::string unit;
  // The goal of the ratio, value / reference, in the worst repetition.
  Goal direction = Goal::kAtLeast;
  double goal = 1;
  // One for each repetition, taken side by side.
  std::vector<double> values = {};
  // The goal is about these: the floor where there is one (floor.h).
  std::vector<double> references = {};
  // The null server's, where it was measured.
  std::vector<double> nulls = {};
  // Processor nanoseconds an example of ours: client and server together, and the server alone.
  std::vector<double> costs = {};
  std::vector<double> server_costs = {};
  // Bytes an example on the wire; 0: not known.
  double bytes = 0;
};

struct Options {
  int reps = 5;
  // A measurement, not counting what prepares it.
  double seconds = 1;
  // Only figures whose name contains it.
  std::string filter;
  // Fewer examples, so that a run takes seconds. What comes out means nothing.
  bool tiny = false;
};

struct Benchmark {
  std::vector<Figure> figures;
  // Adds one value and one reference to each figure, in repetition `rep` from 0.
  std::function<void(int rep, std::vector<Figure>&)> measure;
};

// Nothing is prepared before it is measured. They hold references to `options`.
std::vector<Benchmark> StreamBenchmarks(const Options& options);
Benchmark UnaryLatency(const Options& options);

}  // namespace perceptrond::bench
