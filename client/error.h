// Errors: lossless conversions between grpc::Status, google.rpc.Status and absl::Status, and
// readers of error details.
//
//   if (ErrorReason(status) == "MODEL_NOT_FOUND") ...
//
// The details of a server's error (google.rpc.ErrorInfo, BadRequest, RetryInfo) become payloads of
// the absl::Status under their type URLs, such as "type.googleapis.com/google.rpc.ErrorInfo".
// Distinguish errors by ErrorReason(), not by their message.
//
// Threads: all functions may be called concurrently.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace perceptrond::client {

// The domain of ErrorInfo in the errors of perceptrond servers.
inline constexpr std::string_view kErrorDomain = "perceptrond";

absl::Status ToAbslStatus(const grpc::Status& status);
absl::Status ToAbslStatus(const google::rpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);
google::rpc::Status ToRpcStatus(const absl::Status& status);

// ErrorInfo.reason, such as "MODEL_NOT_FOUND". Empty if the status has none: it is then an error of
// the transport or of this library.
std::string ErrorReason(const absl::Status& status);

// ErrorInfo.metadata, such as {"expected_offset": "17"}.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// BadRequest.field_violations as (field, description).
std::vector<std::pair<std::string, std::string>> FieldViolations(const absl::Status& status);

// RetryInfo.retry_delay: the wait before a retry that the server asks for; absent if it does not.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Makes an error with an ErrorInfo, like those of a server.
absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message);

}  // namespace perceptrond::client
