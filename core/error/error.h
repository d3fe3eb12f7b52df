// Errors with the details that clients and operators act on: absl::Status with google.rpc messages
// as payloads, which the server passes on unchanged.
#pragma once

#include <initializer_list>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perceptrond {

inline constexpr absl::string_view kErrorDomain = "perceptrond";
inline constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";
inline constexpr absl::string_view kBadRequestUrl = "type.googleapis.com/google.rpc.BadRequest";
inline constexpr absl::string_view kRetryInfoUrl = "type.googleapis.com/google.rpc.RetryInfo";

// An error with google.rpc.ErrorInfo: the reason in UPPER_SNAKE, and metadata.
absl::Status MakeError(
    absl::StatusCode code, absl::string_view reason, absl::string_view message,
    std::initializer_list<std::pair<absl::string_view, std::string>> metadata = {});

// The same with google.rpc.BadRequest naming the field.
absl::Status FieldError(absl::StatusCode code, absl::string_view reason, absl::string_view field,
                        absl::string_view description);

// INVALID_ARGUMENT with google.rpc.BadRequest.
absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view description);

// The same for a field of a model's settings: INVALID_FIELD.
absl::Status InvalidSetting(absl::string_view field, absl::string_view description);

// Adds google.rpc.RetryInfo.
absl::Status WithRetry(absl::Status status, absl::Duration delay);

// Adds ErrorInfo to an error that has none, as those of the journal.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// RESOURCE_EXHAUSTED (OUT_OF_MEMORY), with RetryInfo: an allocation failed. Does not allocate, but
// for the first call.
absl::Status OutOfMemory();

// Runs `work`, which returns a status, and returns OutOfMemory if an allocation in it fails.
template <typename Work>
absl::Status WithinMemory(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// FAILED_PRECONDITION, MODEL_FROZEN.
absl::Status ModelFrozen(absl::string_view name);

// NOT_FOUND, MODEL_NOT_FOUND.
absl::Status ModelNotFound(absl::string_view name);

// NOT_FOUND, ALIAS_NOT_FOUND.
absl::Status AliasNotFound(absl::string_view name);

// PERMISSION_DENIED (PERMISSION_DENIED) if an id that clients choose, such as a "request_id", belongs
// to another principal than that of the current caller. Without an owner it is everybody's.
absl::Status CheckOwner(absl::string_view id_kind, absl::string_view owner);

// ABORTED, PRODUCER_SUPERSEDED.
absl::Status ProducerSupersededError(absl::string_view producer);

// UNAVAILABLE, with RetryInfo, for models of a fleet.
// WRITER_CHANGED: another server writes the model now. A client that connects again reaches it.
absl::Status WriterChangedError();
// WRITER_UNREACHABLE: this server has no connection to the one that writes the model.
absl::Status WriterUnreachableError(absl::string_view why);
// NOT_THE_WRITER: another server writes the model.
absl::Status NotTheWriterError(absl::string_view name);
// NOT_THE_WRITER: this server writes no models, since another one of the fleet has its address.
absl::Status AddressTakenError(absl::string_view address);
// MODEL_RELOADED: the model could not follow its writer, and is loaded again with its next use.
absl::Status ReloadedError(absl::string_view name, const absl::Status& why);

// An error of the journal with the reason that its code stands for: MODEL_NOT_FOUND, MODEL_EXISTS,
// JOURNAL_CORRUPT (which names the model) or JOURNAL_UNAVAILABLE. `model` is empty if the error is
// not of one model. OK stays OK.
absl::Status JournalError(absl::Status status, absl::string_view model);

}  // namespace perceptrond
