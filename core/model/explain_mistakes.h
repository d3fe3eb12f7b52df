// A score as what it is in the dual: the sum of what past mistakes contribute. (theory, S8: the
// perceptron's weights are eta times the sum of y (x, b) over its mistakes; other rules have other
// steps, and a kernel in the place of the product)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/learner/learner.h"
#include "core/learner/settings.h"
#include "core/model/explain.h"
#include "core/model/retention.h"
#include "core/vector/row.h"

namespace perceptrond {

// A model at the revision at which a row is scored.
struct PastOfModel {
  const Learner& learner;
  const LearnerSettings& settings;
  // Examples that it judged.
  uint64_t age = 0;
  uint64_t revision = 0;
  // The latest adoption's revision, 0 for none; absent: not known.
  std::optional<uint64_t> adopted;
  // Whether updates are retained at all, and those that are, by ascending revisions.
  bool retains = false;
  std::span<const RetainedUpdate> updates;
};

// Fills in the explanation's part by mistakes, the `limit` largest of them; its score is there
// already. O(row.size + features of the updates); of a kernel as a score.
void ExplainByMistakes(const PastOfModel& past, const Row& row, size_t limit,
                       Explanation& explanation);

}  // namespace perceptrond
