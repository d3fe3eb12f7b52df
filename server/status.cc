#include "server/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "core/model/error.h"
#include "google/rpc/status.pb.h"

namespace perceptrond {
namespace {

// Trailers share 8 KiB by default; the message stands in them twice.
constexpr size_t kMaxMessageBytes = 1024;

}  // namespace

void ToProto(const absl::Status& status, google::rpc::Status& proto) {
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message().substr(0, kMaxMessageBytes)));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *proto.add_details();
    detail.set_type_url(std::string(url));
    detail.set_value(std::string(payload));
  });
}

absl::Status FromProto(const google::rpc::Status& proto) {
  absl::Status status(static_cast<absl::StatusCode>(proto.code()), proto.message());
  for (const google::protobuf::Any& detail : proto.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  ToProto(status, details);
  return {static_cast<grpc::StatusCode>(status.code()), details.message(),
          details.SerializeAsString()};
}

absl::Status DrainingError() {
  return MakeError(
      absl::StatusCode::kUnavailable, "DRAINING",
      "the server is stopping; what it answered is kept, send the rest again after it is back");
}

}  // namespace perceptrond
