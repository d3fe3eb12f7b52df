// One measurement of ours beside its reference, and where to find all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/report.h"

namespace perceptrond::bench {

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
