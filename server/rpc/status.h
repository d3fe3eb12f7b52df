// Errors on their way out: to a call's status, and to the in-band form of the streams. Details go
// along as they are.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace google::rpc {
class Status;
}

namespace perceptrond {

// The status of a call. Messages and details longer than fits in a trailer are cut.
grpc::Status ToGrpc(const absl::Status& status);

// google.rpc.Status.
void ToProto(const absl::Status& status, google::rpc::Status& proto);

// UNAVAILABLE, DRAINING.
absl::Status DrainingError();

// Details included.
absl::Status FromProto(const google::rpc::Status& proto);

}  // namespace perceptrond
