#include "core/error/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/sync/current_call.h"
#include "core/vector/name.h"
#include "google/rpc/error_details.pb.h"

namespace perceptrond {
namespace {

// A take-over takes some milliseconds, or seconds if the writer died.
constexpr absl::Duration kWriterRetry = absl::Milliseconds(100);

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view reason, absl::string_view message,
                       std::initializer_list<std::pair<absl::string_view, std::string>> metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kErrorDomain));
  for (const auto& [key, value] : metadata)
    (*info.mutable_metadata())[std::string(key)] = ToValidUtf8(value);
  absl::Status status(code, ToValidUtf8({message.data(), message.size()}));
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status FieldError(absl::StatusCode code, absl::string_view reason, absl::string_view field,
                        absl::string_view description) {
  absl::Status status = MakeError(code, reason, absl::StrCat(field, ": ", description));
  google::rpc::BadRequest bad_request;
  google::rpc::BadRequest::FieldViolation& violation = *bad_request.add_field_violations();
  violation.set_field(ToValidUtf8({field.data(), field.size()}));
  violation.set_description(ToValidUtf8({description.data(), description.size()}));
  status.SetPayload(kBadRequestUrl, absl::Cord(bad_request.SerializeAsString()));
  return status;
}

absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view description) {
  return FieldError(absl::StatusCode::kInvalidArgument, reason, field, description);
}

absl::Status InvalidSetting(absl::string_view field, absl::string_view description) {
  return InvalidField("INVALID_FIELD", field, description);
}

absl::Status WithRetry(absl::Status status, absl::Duration delay) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(
      (delay - absl::Seconds(absl::ToInt64Seconds(delay))) / absl::Nanoseconds(1)));
  status.SetPayload(kRetryInfoUrl, absl::Cord(retry.SerializeAsString()));
  return status;
}

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (status.ok() || status.GetPayload(kErrorInfoUrl).has_value()) return status;
  return MakeError(status.code(), reason, status.message());
}

absl::Status OutOfMemory() {
  static const auto* const status = new absl::Status(
      WithRetry(MakeError(absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY",
                          "the server could not allocate the memory for this; try again later, "
                          "send less at once, or give the process more memory"),
                absl::Seconds(1)));
  return *status;
}

absl::Status ModelFrozen(absl::string_view name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "MODEL_FROZEN",
                   absl::StrCat("model \"", name, "\" is frozen; unfreeze it to let it learn"),
                   {{"model", std::string(name)}});
}

absl::Status ModelNotFound(absl::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, "MODEL_NOT_FOUND",
                   absl::StrCat("there is no model \"", name,
                                "\"; create it first, or list the models there are"),
                   {{"model", std::string(name)}});
}

absl::Status AliasNotFound(absl::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, "ALIAS_NOT_FOUND",
                   absl::StrCat("there is no alias \"", name,
                                "\"; create it first, or list the aliases there are"),
                   {{"alias", std::string(name)}});
}

absl::Status CheckOwner(absl::string_view id_kind, absl::string_view owner) {
  if (owner.empty() || current_caller == nullptr || current_caller->IsNamed(owner))
    return absl::OkStatus();
  return MakeError(absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED",
                   absl::StrCat("this ", id_kind, " is another principal's: choose another"),
                   {{"principal", current_caller->principal()}});
}

absl::Status ProducerSupersededError(absl::string_view producer) {
  return MakeError(
      absl::StatusCode::kAborted, "PRODUCER_SUPERSEDED",
      absl::StrCat("producer \"", producer, "\" has opened a newer stream; this one ends"));
}

absl::Status WriterChangedError() {
  return WithRetry(
      MakeError(absl::StatusCode::kUnavailable, "WRITER_CHANGED",
                "another server of the fleet writes this model now: connect again, and "
                "resume"),
      kWriterRetry);
}

absl::Status WriterUnreachableError(absl::string_view why) {
  return WithRetry(
      MakeError(
          absl::StatusCode::kUnavailable, "WRITER_UNREACHABLE",
          absl::StrCat("the server of the fleet that writes this model cannot be reached from "
                       "here: try again (",
                       why, ")")),
      kWriterRetry);
}

absl::Status NotTheWriterError(absl::string_view name) {
  return WithRetry(MakeError(absl::StatusCode::kUnavailable, "NOT_THE_WRITER",
                             absl::StrCat("model \"", name,
                                          "\" is written by another server, which cannot be "
                                          "reached or is not known yet: try again"),
                             {{"model", std::string(name)}}),
                   kWriterRetry);
}

absl::Status AddressTakenError(absl::string_view address) {
  return WithRetry(
      MakeError(
          absl::StatusCode::kUnavailable, "NOT_THE_WRITER",
          absl::StrCat("this server writes no model, since another server of the fleet has its "
                       "address, ",
                       address,
                       ": use another server, and give this one a --fleet-address or "
                       "--fleet-advertise of its own"),
          {{"address", std::string(address)}}),
      kWriterRetry);
}

absl::Status ReloadedError(absl::string_view name, const absl::Status& why) {
  return WithRetry(MakeError(absl::StatusCode::kUnavailable, "MODEL_RELOADED",
                             absl::StrCat("model \"", name,
                                          "\" is loaded again, since it could not follow its "
                                          "writer: ",
                                          why.message()),
                             {{"model", std::string(name)}}),
                   kWriterRetry);
}

absl::Status JournalError(absl::Status status, absl::string_view model) {
  if (status.ok()) return status;
  if (absl::IsNotFound(status)) return ModelNotFound(model);
  if (absl::IsAlreadyExists(status)) {
    return MakeError(absl::StatusCode::kAlreadyExists, "MODEL_EXISTS",
                     absl::StrCat("model \"", model, "\" exists already"),
                     {{"model", std::string(model)}});
  }
  if (absl::IsDataLoss(status) && !model.empty()) {
    return MakeError(absl::StatusCode::kDataLoss, "JOURNAL_CORRUPT",
                     absl::StrCat("model \"", model, "\" is damaged: ", status.message()),
                     {{"model", std::string(model)}});
  }
  if (absl::IsDataLoss(status)) return WithReason(std::move(status), "JOURNAL_CORRUPT");
  // Whether it was written will be known once the model is loaded again: to a client it is as if it was not. Other
  // servers have changed the model again and again.
  if (absl::IsUnknown(status) || absl::IsAborted(status))
    status = absl::UnavailableError(status.message());
  return WithRetry(WithReason(std::move(status), "JOURNAL_UNAVAILABLE"), absl::Seconds(1));
}

}  // namespace perceptrond
