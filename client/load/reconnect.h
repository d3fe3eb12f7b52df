// Unary calls that wait for a server to come back.
#pragma once

#include <memory>

#include "client/connection.h"
#include "client/retry.h"

namespace perceptrond::client {

// The policy with waits in which the connection may come back: where there are no streams, gRPC
// goes on connecting only while a call waits for it.
RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection);

}  // namespace perceptrond::client
