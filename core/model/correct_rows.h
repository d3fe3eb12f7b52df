// Rows that one server of a fleet evaluates for another. A correct row changes nothing, so that any
// copy of the model can evaluate it, and belongs at the revision it was evaluated on; the server that writes
// the model counts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/convergence/tally.h"
#include "core/ledger/segment.h"
#include "core/model/model.h"

namespace perceptrond {

// The first rows of a batch, evaluated. Reused from call to call: vectors keep their memory.
struct CorrectRows {
  // How many: all up to the first that calls for an update. Those with errors are among them.
  size_t rows = 0;
  Tally tally;
  // As if these rows had been learned on outcome.revision; without next_offset. Scores and labels are
  // those of the whole batch, NaN and no label after these rows.
  LearnOutcome outcome;
};

// Whether a correct row of this model needs no more than to be counted, later and elsewhere. Not if
// the model is a composition, samples its examples, or learns from batches, which end after a number
// of examples.
bool CanEvaluateElsewhere(const Model& model);

// Evaluates a batch's rows, from the first on, up to one that calls for an update or introduces a
// class. Changes nothing. Errors as Learn's of the batch as a whole, FAILED_PRECONDITION (MODEL_FROZEN)
// among them; the outcome then means nothing. Holds the state's lock shared. O(features of the batch).
absl::Status EvaluateCorrectRows(const Model& model, const Batch& batch,
                                 std::span<const RowError> row_errors, bool detail,
                                 CorrectRows& result);

// Counts rows of a producer that were evaluated elsewhere, and moves its position past them. The
// caller holds the producer's turn. `rows`: their number; `unchanged`: by ascending revision.
// On an error nothing changed: ABORTED (PRODUCER_SUPERSEDED) unless they begin at the producer's
// position; UNAVAILABLE (WRITER_CHANGED) for a revision that the model does not have; why the model is
// closed.
absl::Status CountCorrectRows(Model& model, Producer& producer, int64_t first_offset, int64_t rows,
                              std::vector<UnchangedRows> unchanged);

}  // namespace perceptrond
