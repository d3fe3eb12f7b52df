// Exactly once: which rows of a message are new, by the position of its producer; and the
// predictions that they use up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/ledger/segment.h"
#include "core/vector/check.h"

namespace perceptrond {

struct LearnCall;
struct ProducerPosition;

// What of a message is new.
struct NewRows {
  // The first row that is not a replay; all rows before it were learned already.
  size_t first_new_row = 0;
  // The message ends a pass that has not ended yet.
  bool ends_new_pass = false;
};

// Compares a message of `rows` rows with its producer's position. OUT_OF_RANGE (OFFSET_GAP,
// PASS_GAP); INVALID_ARGUMENT (INVALID_FIELD; PASS_ENDED for new rows of a pass that has ended);
// FAILED_PRECONDITION (MODEL_FROZEN) for anything new while the model is frozen. O(1).
absl::StatusOr<NewRows> Admit(const LearnCall& call, size_t rows, const ProducerPosition& position,
                              bool frozen, absl::string_view model);

// Removes the predictions of rows before `end` from `predictions`, and returns the numbers of those
// whose rows are not in `refused`. Both ascend by row.
std::vector<uint64_t> TakeLearned(std::span<const PredictionOfRow>& predictions, size_t end,
                                  std::span<const RowError> refused);

}  // namespace perceptrond
