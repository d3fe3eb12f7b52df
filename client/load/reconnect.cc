#include "client/load/reconnect.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"

namespace perceptrond::client {

RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection) {
  policy.sleep = [connection = std::move(connection)](absl::Duration wait) {
    const absl::Time until = absl::Now() + wait;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(until));
    Health health = Health::kUnknown;
    connection->CheckHealth(&context, "", &health);
    absl::SleepFor(until - absl::Now());
  };
  return policy;
}

}  // namespace perceptrond::client
