// Unary calls whose answer is there when the method returns.
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/drain.h"
#include "server/message.h"
#include "server/status.h"

namespace perceptrond {

// Parses the request, has `body` fill the response, and ends the call with the status it returns.
// body: absl::Status(const Request&, Response&). `while_draining`: also while the server drains.
template <typename Request, typename Response, typename Body>
grpc::ServerUnaryReactor* AnswerUnary(grpc::CallbackServerContext* context, Drain& drain,
                                      size_t max_bytes, const grpc::ByteBuffer& bytes,
                                      grpc::ByteBuffer& answer, const Body& body,
                                      bool while_draining = false) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const Drain::Visit visit(drain);
  grpc::ByteBuffer own = bytes;
  Request request;
  Response response;
  absl::Status status =
      drain.draining() && !while_draining ? DrainingError() : ParseMessage(own, max_bytes, request);
  if (status.ok()) status = body(request, response);
  if (status.ok()) status = SerializeMessage(response, answer);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace perceptrond
