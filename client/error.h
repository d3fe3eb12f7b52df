// Errors: grpc::Status and google.rpc.Status as absl::Status and back, with nothing lost on the
// way.
//
// A server's error carries details (google.rpc.ErrorInfo, BadRequest, RetryInfo). Each becomes a
// payload of the absl::Status under its type URL, "type.googleapis.com/google.rpc.ErrorInfo" for
// one. The helpers below read them; tell errors apart by ErrorReason(), never by their text.
//
// Threads: free functions without state.
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

// The domain of every ErrorInfo that a perceptrond server sends.
inline constexpr std::string_view kErrorDomain = "perceptrond";

absl::Status ToAbslStatus(const grpc::Status& status);
absl::Status ToAbslStatus(const google::rpc::Status& status);
grpc::Status ToGrpcStatus(const absl::Status& status);
google::rpc::Status ToRpcStatus(const absl::Status& status);

// ErrorInfo.reason, such as "MODEL_NOT_FOUND"; empty where the status has none: it then comes from
// the transport, or from this library's own checks.
std::string ErrorReason(const absl::Status& status);

// ErrorInfo.metadata, such as {"expected_offset": "17"}.
std::map<std::string, std::string> ErrorMetadata(const absl::Status& status);

// BadRequest.field_violations as (field, description).
std::vector<std::pair<std::string, std::string>> FieldViolations(const absl::Status& status);

// RetryInfo.retry_delay: how long the server asks to be left alone; absent where it does not say.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// An error of this library's own with a reason as a server would give it.
absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message);

}  // namespace perceptrond::client
