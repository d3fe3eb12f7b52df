// grpc.health.v1.Health.Check without its generated code, which Debian's gRPC does not ship: the
// request is one string field and the answer one enum.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "client/connection.h"

namespace perceptrond::client {

// `service` empty: the server as a whole. NOT_FOUND: the server does not know the service. Blocks
// until answered or the context's deadline. Threads: any.
grpc::Status CheckHealthOver(const std::shared_ptr<grpc::Channel>& channel,
                             grpc::ClientContext* context, const std::string& service,
                             Health* health);

}  // namespace perceptrond::client
