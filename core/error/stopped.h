// What work that was cut short returns.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/sync/cancellation.h"

namespace perceptrond {

// CANCELLED (CANCELLED), DEADLINE_EXCEEDED (DEADLINE_EXCEEDED) or UNAVAILABLE (DRAINING), by why
// the calling thread's work was stopped; OK if it was not. O(1).
absl::Status StoppedError();
// The same, saying what was done before.
absl::Status StoppedError(absl::string_view done);
absl::Status StoppedError(StopReason reason);

}  // namespace perceptrond
