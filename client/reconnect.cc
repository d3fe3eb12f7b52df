#include "client/reconnect.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"

namespace perceptrond::client {

RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection) {
  policy.sleep = [connection = std::move(connection),
                  sleep = std::move(policy.sleep)](absl::Duration wait) {
    const absl::Time until = absl::Now() + wait;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(until));
    Health health = Health::kUnknown;
    connection->CheckHealth(&context, "", &health);
    sleep(std::max(until - absl::Now(), absl::ZeroDuration()));
  };
  return policy;
}

}  // namespace perceptrond::client
