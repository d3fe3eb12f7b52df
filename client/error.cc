#include "client/error.h"

#include <google/protobuf/any.pb.h>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

namespace perceptrond::client {
namespace {

constexpr std::string_view kTypePrefix = "type.googleapis.com/";

// absl::Status and gRPC have the same codes; any other number is UNKNOWN, as in gRPC.
absl::StatusCode CodeFromNumber(int code) {
  return code >= 0 && code <= 16 ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
}

template <typename Detail>
bool ReadDetail(const absl::Status& status, Detail* detail) {
  const auto payload = status.GetPayload(std::string(kTypePrefix) + detail->GetTypeName());
  return payload.has_value() && detail->ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status ToAbslStatus(const google::rpc::Status& status) {
  absl::Status result(CodeFromNumber(status.code()), status.message());
  for (const google::protobuf::Any& detail : status.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    // A proxy that ends the connection after the server's answer leaves CANCELLED in its place.
    if (details.code() == 0) details.set_code(status.error_code());
    if (details.message().empty()) details.set_message(status.error_message());
    return ToAbslStatus(details);
  }
  return absl::Status(CodeFromNumber(status.error_code()), status.error_message());
}

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  result.set_message(std::string(status.message()));
  status.ForEachPayload([&result](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any* detail = result.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  return result;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status details = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), details.message(),
                      details.details().empty() ? std::string() : details.SerializeAsString());
}

std::string ErrorReason(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  return ReadDetail(status, &info) ? info.reason() : std::string();
}

std::map<std::string, std::string> ErrorMetadata(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  if (!ReadDetail(status, &info)) return {};
  return {info.metadata().begin(), info.metadata().end()};
}

std::vector<std::pair<std::string, std::string>> FieldViolations(const absl::Status& status) {
  std::vector<std::pair<std::string, std::string>> result;
  google::rpc::BadRequest bad;
  if (!ReadDetail(status, &bad)) return result;
  for (const auto& violation : bad.field_violations()) {
    result.emplace_back(violation.field(), violation.description());
  }
  return result;
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  google::rpc::RetryInfo info;
  if (!ReadDetail(status, &info) || !info.has_retry_delay()) return std::nullopt;
  return absl::Seconds(info.retry_delay().seconds()) +
         absl::Nanoseconds(info.retry_delay().nanos());
}

absl::Status MakeError(absl::StatusCode code, std::string_view reason, std::string_view message) {
  google::rpc::ErrorInfo info;
  info.set_domain(std::string(kErrorDomain));
  info.set_reason(std::string(reason));
  absl::Status status(code, std::string(message));
  status.SetPayload(std::string(kTypePrefix) + info.GetTypeName(),
                    absl::Cord(info.SerializeAsString()));
  return status;
}

}  // namespace perceptrond::client
