// Calls of one request and one answer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "core/model/store.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/drain.h"
#include "server/rpc/message.h"
#include "server/rpc/quick.h"
#include "server/rpc/status.h"
#include "server/rpc/workers.h"

namespace perceptrond {

// With the answer if all is well.
void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& answer);

// Reads the one request of a call, which the drain waits for from then on; `answer` may take the
// bytes, must not wait, and has the call finished, by whatever thread.
Call::Method OnRequest(Drain& drain, std::function<void(Call&, grpc::ByteBuffer&)> answer);

// Whether a request is answered without waiting for the disk.
template <typename Request>
using QuickTest = bool (*)(Store&, const Request&);

// The same, parsed. On a worker, but for small requests that are quick.
template <typename Request>
Call::Method OnRequest(const Backend& backend, std::function<void(Call&, const Request&)> answer,
                       QuickTest<Request> quick) {
  const auto shared = std::make_shared<const decltype(answer)>(std::move(answer));
  return OnRequest(backend.drain, [backend, shared, quick](Call& call, grpc::ByteBuffer& bytes) {
    const size_t most = backend.max_message_bytes;
    if (quick == nullptr || bytes.Length() > kSmallMessage) {
      return backend.workers.Do([&call, shared, most, own = std::move(bytes)]() mutable {
        Request request;
        const absl::Status status = ParseMessage(own, most, request);
        status.ok() ? (*shared)(call, request) : call.Finish(ToGrpc(status));
      });
    }
    Request request;
    if (absl::Status status = ParseMessage(bytes, most, request); !status.ok())
      return call.Finish(ToGrpc(status));
    if (quick(backend.store, request)) return (*shared)(call, request);
    backend.workers.Do([&call, shared, own = std::move(request)] { (*shared)(call, own); });
  });
}

// Makes methods of which a body fills the response, and that end with the status it returns.
class UnaryMethods {
 public:
  explicit UnaryMethods(const Backend& backend) : backend_(backend) {}

  // Refused while the server drains.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const Request&, Response&),
                          QuickTest<Request> quick = nullptr) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return backend.drain.draining() ? DrainingError()
                                          : body(backend.store, request, response);
        },
        quick);
  }
  // The body asks the drain itself.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const Drain&, const Request&, Response&),
                          QuickTest<Request> quick = nullptr) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return body(backend.store, backend.drain, request, response);
        },
        quick);
  }

 private:
  template <typename Request, typename Response, typename Body>
  Call::Method Make(Body body, QuickTest<Request> quick) const {
    return OnRequest<Request>(
        backend_,
        [body](Call& call, const Request& request) {
          Response response;
          grpc::ByteBuffer answer;
          absl::Status status = body(request, response);
          if (status.ok()) status = SerializeMessage(response, answer);
          FinishUnary(call, status, answer);
        },
        quick);
  }

  const Backend backend_;
};

}  // namespace perceptrond
