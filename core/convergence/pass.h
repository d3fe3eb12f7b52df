// Passes over a data set (seeds 000, 003, 004): a producer marks their ends, and a pass without a
// change is convergence.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "core/convergence/tally.h"

namespace perceptrond {

// A finished pass. See perceptron.v1.PassSummary.
struct PassSummary {
  int64_t number = 0;
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t rejected = 0;
  double risk = 0;
  double loss = 0;
  bool converged = false;
  // Margin of the weights over the pass; only if converged and the weights are not zero.
  std::optional<double> margin;
  // R^2 over the pass.
  double squared_radius = 0;
};

// A pass in progress. Not thread-safe.
struct PassProgress {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t rejected = 0;
  double risk = 0;
  double loss = 0;
  double min_score = std::numeric_limits<double>::infinity();
  double squared_radius = 0;
  // The revision its first example was judged on.
  uint64_t start_revision = 0;
  // Of a composition: what its components answered its first example from.
  std::optional<uint64_t> components;
  // An example was judged on another revision than that, or by other answers of components, or was
  // wrong and could not be learned.
  bool changed = false;

  // Takes in a stretch judged on `judged_on`.
  void Add(const Tally& tally, uint64_t judged_on);
  // Ends the pass when the model stands at `revision` with an augmented norm of `norm`.
  PassSummary End(int64_t number, uint64_t revision, double norm) const;
};

}  // namespace perceptrond
