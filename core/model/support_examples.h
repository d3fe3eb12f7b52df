// A score in its dual form: the sum of what the examples that caused updates contribute. (theory,
// S8: the perceptron's weights are eta times the sum of y (x, b) over its mistakes; other rules
// have other coefficients, and kernels another product.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/learner/learner.h"
#include "core/learner/settings.h"
#include "core/model/explain.h"
#include "core/model/stored_examples.h"
#include "core/vector/row.h"

namespace perceptrond {

// A model at the revision at which a row is scored.
struct SupportContext {
  const Learner& learner;
  const LearnerSettings& settings;
  // Examples evaluated.
  uint64_t age = 0;
  uint64_t revision = 0;
  // The revision of the latest weight replacement, 0 for none.
  uint64_t replaced = 0;
  // Whether the model stores updates at all.
  bool stores_updates = false;
  // The stored updates, by ascending revision.
  std::span<const StoredUpdate> updates;
};

// Fills in the support examples of an explanation whose score is there already, the `limit` largest
// of them. O(row.size + features of the stored updates); for kernels as long as a score takes.
void ExplainBySupport(const SupportContext& context, const Row& row, size_t limit,
                      Explanation& explanation);

}  // namespace perceptrond
