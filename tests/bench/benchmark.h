// One measurement of ours beside its reference, and where to find all of them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/report.h"

namespace perceptrond::bench {

struct Options {
  int reps = 5;
  // A measurement, not counting what prepares it.
  double seconds = 1;
  // Only figures whose name holds it.
  std::string filter;
  // json instead of a table.
  bool json = false;
  // Fewer examples, so that a run takes seconds. What comes out means nothing.
  bool tiny = false;
};

struct Benchmark {
  std::vector<Figure> figures;
  // Adds one value and one reference to each figure.
  std::function<void(std::vector<Figure>&)> measure;
};

inline void Add(Figure& figure, double value, double reference) {
  figure.values.push_back(value);
  figure.references.push_back(reference);
}

// Nothing is prepared before it is measured. They hold references to `options`.
std::vector<Benchmark> StreamBenchmarks(const Options& options);
std::vector<Benchmark> LatencyBenchmarks(const Options& options);
std::vector<Benchmark> CoreBenchmarks(const Options& options);
std::vector<Benchmark> ProcessBenchmarks(const Options& options);
std::vector<Benchmark> StoreBenchmarks(const Options& options);

}  // namespace perceptrond::bench
