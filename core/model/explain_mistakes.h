// A score as what it is in the dual: the sum of what past mistakes contribute. (theory, S8: the
// perceptron's weights are eta times the sum of y (x, b) over its mistakes)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/learner/settings.h"
#include "core/model/explain.h"
#include "core/model/retention.h"
#include "core/vector/row.h"

namespace perceptrond {

// Whether the weights are that sum and the answer is made with them: the plain perceptron's, from
// zero.
bool IsSumOfMistakes(const LearnerSettings& settings);

// Fills in the explanation's part by mistakes: the `limit` largest of `updates` up to `revision`,
// at which the row was scored. O(row.size + features of the updates).
void ExplainByMistakes(const LearnerSettings& settings, std::span<const RetainedUpdate> updates,
                       uint64_t revision, const Row& row, size_t limit, Explanation& explanation);

}  // namespace perceptrond
