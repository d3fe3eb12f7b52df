// How a model is restored from its journal: the snapshot, then every record after it, each checked
// against what it says of itself. docs/journal.md describes the whole.
#pragma once

#include "absl/status/status.h"
#include "core/journal/journal.h"
#include "core/model/model_core.h"

namespace perceptrond {

// Restores the state of a core that was made with the counters of `committed` and has learned
// nothing yet. The restored weights are equal to the bit to those before. DATA_LOSS, and the core
// is of no use, if the journal is inconsistent. O(snapshot and records).
absl::Status Recover(Journal& journal, const storage::Counters& committed, ModelCore& core);

}  // namespace perceptrond
