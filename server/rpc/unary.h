// Calls with one request and one response.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "core/store/store.h"
#include "server/access/admission.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/rpc/timed_request.h"

namespace perceptrond {

// Ends the call with the response if `status` is OK, and with the status otherwise.
void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& response);

// A method that reads the one request of a call and passes its bytes to `handler`. From then on the
// drain waits for the call. The handler may consume the bytes and must not block; it must have the
// call finished, on any thread.
Call::Method OnRequest(Drain& drain, std::function<void(Call&, grpc::ByteBuffer&)> handler);

// Whether the polling thread may handle a request: it takes microseconds and does not block.
template <typename Request>
using InlineTest = bool (*)(Store&, const Request&);

// The same with a parsed request. The handler runs on a worker, except for requests of at most
// kMaxInlineBytes for which `can_run_inline` is true; null stands for never.
template <typename Request>
Call::Method OnRequest(const Backend& backend, std::function<void(Call&, const Request&)> handler,
                       InlineTest<Request> can_run_inline) {
  // Examples are counted for the caller.
  const auto shared = std::make_shared<const decltype(handler)>(
      [handler = std::move(handler)](Call& call, const Request& request) {
        if (call.access() == nullptr) return handler(call, request);
        if (absl::Status status = call.access()->CheckLimit(); !status.ok())
          return call.Finish(ToGrpc(status));
        const CountedUsage counted(call.access()->usage());
        handler(call, request);
      });
  return OnRequest(backend.drain, [backend, shared, can_run_inline](Call& call,
                                                                    grpc::ByteBuffer& bytes) {
    const size_t max_bytes = backend.max_message_bytes;
    if (can_run_inline == nullptr || bytes.Length() > kMaxInlineBytes) {
      return backend.workers.Schedule([&call, shared, max_bytes, own = std::move(bytes)]() mutable {
        Request request;
        const absl::Status status = ParseRequest(call, own, max_bytes, request);
        status.ok() ? (*shared)(call, request) : call.Finish(ToGrpc(status));
      });
    }
    Request request;
    if (absl::Status status = ParseRequest(call, bytes, max_bytes, request); !status.ok())
      return call.Finish(ToGrpc(status));
    if (can_run_inline(backend.store, request)) return (*shared)(call, request);
    call.timing().Switch(Part::kQueue);
    backend.workers.Schedule([&call, shared, own = std::move(request)] {
      call.timing().Switch(Part::kWork);
      (*shared)(call, own);
    });
  });
}

// Makes methods from functions that fill a response and return the status that the call ends with.
//
//   const UnaryMethods unary(backend);
//   router.AddService("perceptron.v1.ModelService", {{"GetModel", unary(Get)}, ...});
class UnaryMethods {
 public:
  explicit UnaryMethods(const Backend& backend) : backend_(backend) {}

  // The method is refused with DrainingError while the server drains.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const Request&, Response&),
                          InlineTest<Request> can_run_inline = nullptr) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return backend.drain.draining() ? DrainingError()
                                          : body(backend.store, request, response);
        },
        can_run_inline);
  }
  // For a body whose answer depends on what the caller may do: null if nothing is checked.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const CallAccess*, const Request&,
                                               Response&)) const {
    return OnRequest<Request>(
        backend_,
        [backend = backend_, body](Call& call, const Request& request) {
          Response response;
          const absl::Status status = backend.drain.draining()
                                          ? DrainingError()
                                          : body(backend.store, call.access(), request, response);
          FinishWithMessage(call, status, response);
        },
        nullptr);
  }
  // For a body that looks at the drain itself.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const Drain&, const Request&, Response&),
                          InlineTest<Request> can_run_inline = nullptr) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return body(backend.store, backend.drain, request, response);
        },
        can_run_inline);
  }

 private:
  template <typename Request, typename Response, typename Body>
  Call::Method Make(Body body, InlineTest<Request> can_run_inline) const {
    return OnRequest<Request>(
        backend_,
        [body](Call& call, const Request& request) {
          Response response;
          const absl::Status status = body(request, response);
          FinishWithMessage(call, status, response);
        },
        can_run_inline);
  }

  template <typename Response>
  static void FinishWithMessage(Call& call, absl::Status status, const Response& response) {
    grpc::ByteBuffer bytes;
    if (status.ok()) status = SerializeMessage(response, bytes);
    FinishUnary(call, status, bytes);
  }

  const Backend backend_;
};

}  // namespace perceptrond
