// A model as it was at an earlier revision.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "core/journal/journal.h"
#include "core/model/model_core.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// A state, and the counters of that moment as far as a rollback uses them (RollBackCounters): what the
// theorem counts, and for rules that count examples how many there were.
struct PastState {
  storage::Snapshot state;
  storage::Counters counters;
};

// The records of a journal after a revision, ascending: Journal::Replay.
using RecordSource =
    std::function<absl::Status(uint64_t after_revision, const ReplayCallback& replay)>;

// A revision, as it was before the update that followed.
struct PastMoment {
  uint64_t revision = 0;
  // If none followed, of rules that count them: the examples that the run has now (Ledger::examples).
  std::optional<uint64_t> examples = std::nullopt;
};

// The model at a revision, which is that of `past` or a later one: `past` with the updates after it
// replayed, and checked, as when a model is loaded. For rules that count them, with the examples evaluated
// before the update that followed. NOT_FOUND if the source lacks some of it; DATA_LOSS; StoppedError. O(state
// and records).
absl::StatusOr<PastState> ReplayTo(const PastMoment& moment, PastState past,
                                   const storage::ModelHeader& header, const RecordSource& records);

}  // namespace perceptrond
