// One measurement of ours beside its reference, and where to find all of them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/load.h"
#include "tests/bench/report.h"
#include "tests/bench/servers.h"

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

// Calls both, in the other order every other repetition: what drifts does not always favour one.
template <typename Ours, typename Reference>
void InTurn(int rep, Ours ours, Reference reference) {
  if (rep % 2 == 1) reference();
  ours();
  if (rep % 2 == 0) reference();
}

inline void Add(Figure& figure, double value, double reference) {
  figure.values.push_back(value);
  figure.references.push_back(reference);
}

// Nothing is prepared before it is measured. They hold references to `options`.
std::vector<Benchmark> StreamBenchmarks(const Options& options);
Benchmark UnaryLatency(const Options& options);

}  // namespace perceptrond::bench
