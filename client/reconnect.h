// Unary calls that wait for a server to come back.
#pragma once

#include <memory>

#include "client/connection.h"
#include "client/retry.h"

namespace perceptrond::client {

// The policy with waits in which the connection may come back: without streams gRPC goes on
// connecting only while a call waits for it. What is left of a wait then is policy.sleep's.
RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection);

}  // namespace perceptrond::client
