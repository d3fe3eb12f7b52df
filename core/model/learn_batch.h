// How a batch is learned.
#pragma once

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/model/model_core.h"

namespace perceptrond {

// Model::Learn, for rows in the space that the model learns in. Mistakes are the only writes: rows
// are evaluated under the state's shared lock until one calls for an update; that row is evaluated
// again under the exclusive lock, and learned if it still calls for one.
absl::Status LearnBatch(ModelCore& core, const LearnCall& call, LearnOutcome& outcome);

}  // namespace perceptrond
