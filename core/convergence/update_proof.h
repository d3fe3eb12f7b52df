// What the theorem's figures need to know of an update besides that it was made: how far it
// reached, and how exact its arithmetic was (docs/adr/0013-learners.md).
#pragma once

#include "core/convergence/tally.h"
#include "core/learner/learner.h"
#include "core/learner/settings.h"

namespace perceptrond {

// Notes an update that the learner has just made with this row. Nothing for learners that the
// theorem does not speak of. O(row.size); O(weights) when they have come back to zero.
void NoteUpdate(const LearnerSettings& settings, const Learner& learner, const Row& row,
                const Target& target, Tally& tally);

}  // namespace perceptrond
