#include "core/error/stopped.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"

namespace perceptrond {

absl::Status StoppedError() { return StoppedError(StoppedBy()); }

absl::Status StoppedError(absl::string_view done) {
  const absl::Status plain = StoppedError();
  absl::Status status(plain.code(), absl::StrCat(plain.message(), "; ", done));
  plain.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

absl::Status StoppedError(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      break;
    case StopReason::kCancelled:
      return MakeError(absl::StatusCode::kCancelled, "CANCELLED", "the client cancelled the call");
    case StopReason::kDeadline:
      return MakeError(absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED",
                       "the call's deadline passed before the work was done; allow more time, or "
                       "send fewer rows at once");
    case StopReason::kDraining:
      return WithRetry(MakeError(absl::StatusCode::kUnavailable, "DRAINING",
                                 "the server is stopping; everything it acknowledged is kept: "
                                 "reconnect and send the rest"),
                       absl::Milliseconds(100));
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
