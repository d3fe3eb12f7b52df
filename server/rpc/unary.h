// Calls with one request and one response.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/store/store.h"
#include "core/sync/cancellation.h"
#include "core/sync/current_call.h"
#include "server/access/admission.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/message.h"
#include "server/rpc/message_work.h"
#include "server/rpc/revision_wait.h"
#include "server/rpc/timed_request.h"

namespace perceptrond {

// Ends the call with the response if `status` is OK, and with the status otherwise.
void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& response);

// A method that reads the one request of a call and passes its bytes to `handler`. From then on the
// drain waits for the call. The handler may consume the bytes and must not block; it must have the
// call finished, on any thread.
Call::Method OnRequest(Drain& drain, std::function<void(Call&, grpc::ByteBuffer&)> handler);

// Counts a request that was received. RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, MEMORY_EXHAUSTED).
absl::Status HoldRequest(Call& call, const Backend& backend, const grpc::ByteBuffer& request);
// Counts what a request has become while it waits for a worker or a revision. False, and the call has ended with
// RESOURCE_EXHAUSTED (MEMORY_EXHAUSTED): it does not fit.
bool HoldParsed(Call& call, const Backend& backend, const MessageWork& work);
// Counts an answer until the client has it. RESOURCE_EXHAUSTED (MEMORY_EXHAUSTED).
absl::Status HoldAnswer(Call& call, const Backend& backend, const grpc::ByteBuffer& answer);

// Where a request is handled.
struct Placement {
  WorkSize size = WorkSize::kSmall;
  // It takes microseconds and does not block: the polling thread may handle it, if it is small on
  // the wire, too.
  bool can_run_inline = false;
};
// Decides without blocking, on any thread.
template <typename Request>
using PlacementRule = Placement (*)(Store&, const Request&);

// The placement of every request of a method.
template <typename Request>
Placement IsManagement(Store& /*store*/, const Request& /*request*/) {
  return {WorkSize::kManagement};
}

template <typename Request>
Placement IsLarge(Store& /*store*/, const Request& /*request*/) {
  return {WorkSize::kLarge};
}

// RESOURCE_EXHAUSTED (SERVER_BUSY).
absl::Status ServerBusy();

// Has a worker run `work`, which must have the call finished, unless the call is over by then. If
// too much waits the call ends with RESOURCE_EXHAUSTED (SERVER_BUSY).
void ScheduleCall(Workers& workers, WorkSize size, Call& call, Workers::Work work);

// Decides without blocking, on any thread.
template <typename Request>
using AwaitRule = AwaitedRevision (*)(Store&, const Request&);

// Loads the model. May block. Errors as Store::Acquire's.
absl::Status LoadModel(Store& store, const std::string& name);

// The same with a parsed request. The handler runs where `placement_of` says, for a call that is not
// over: KeepGoing (core/sync/cancellation.h) asks the call. `awaits` may be null.
template <typename Request>
Call::Method OnRequest(const Backend& backend, std::function<void(Call&, const Request&)> handler,
                       PlacementRule<Request> placement_of, AwaitRule<Request> awaits = nullptr) {
  struct Parsed {
    const Backend backend;
    const decltype(handler) handle;
    const PlacementRule<Request> placement_of;
    const AwaitRule<Request> awaits;

    // On the thread that has parsed the request: handles it there if it may, else elsewhere.
    void Handle(Call& call, Request& request, const MessageWork& work, bool is_polling) const {
      if (awaits != nullptr) {
        const AwaitedRevision awaited = awaits(backend.store, request);
        if (awaited.waiters != nullptr) return Await(call, request, work, awaited);
        if (!awaited.unloaded.empty()) return LoadFirst(call, request, work, awaited.unloaded);
      }
      Choose(call, request, work, is_polling);
    }
    void LoadFirst(Call& call, Request& request, const MessageWork& work,
                   const std::string& name) const {
      if (!HoldParsed(call, backend, work)) return;
      call.timing().Switch(Part::kQueue);
      const WorkSize size = placement_of(backend.store, request).size;
      const auto own = std::make_shared<Request>(std::move(request));
      ScheduleCall(backend.workers, size, call, [this, &call, own, work, name] {
        call.timing().Switch(Part::kWork);
        if (absl::Status status = LoadModel(backend.store, name); !status.ok())
          return call.Finish(ToGrpc(status));
        const AwaitedRevision awaited = awaits(backend.store, *own);
        if (awaited.waiters != nullptr) return Await(call, *own, work, awaited);
        Choose(call, *own, work, false);
      });
    }
    void Await(Call& call, Request& request, const MessageWork& work,
               const AwaitedRevision& awaited) const {
      if (!HoldParsed(call, backend, work)) return;
      call.timing().Switch(Part::kQueue);
      const auto own = std::make_shared<Request>(std::move(request));
      AwaitRevision(call, awaited, absl::InfiniteDuration(), [this, &call, own, work] {
        ScheduleCall(backend.workers, WorkSize::kSmall, call, [this, &call, own, work] {
          call.timing().Switch(Part::kWork);
          Choose(call, *own, work, false);
        });
      });
    }
    void Choose(Call& call, Request& request, const MessageWork& work, bool is_polling) const {
      const Placement placement = placement_of(backend.store, request);
      const bool here = is_polling ? placement.can_run_inline : placement.size != WorkSize::kLarge;
      if (here) {
        const CancellationScope scope(&call.cancellation());
        return HandleHere(call, request);
      }
      if (!HoldParsed(call, backend, work)) return;
      call.timing().Switch(Part::kQueue);
      ScheduleCall(backend.workers, placement.size, call,
                   [this, &call, work, own = std::move(request)] {
                     call.timing().Switch(Part::kWork);
                     const WorkMemory::Lease lease(backend.memory.work(), work.leased_bytes());
                     HandleHere(call, own);
                   });
    }
    // Examples are counted for the caller.
    void HandleHere(Call& call, const Request& request) const {
      const CallScope scope(call.caller());
      if (call.access() == nullptr) return handle(call, request);
      if (absl::Status status = call.access()->CheckLimit(); !status.ok())
        return call.Finish(ToGrpc(status));
      const CountedUsage counted(call.access()->usage());
      handle(call, request);
    }
  };
  const auto parsed =
      std::make_shared<const Parsed>(Parsed{backend, std::move(handler), placement_of, awaits});
  return OnRequest(backend.drain, [parsed](Call& call, grpc::ByteBuffer& bytes) {
    const Backend& backend = parsed->backend;
    call.UseMemory(backend.memory);
    if (absl::Status status = HoldRequest(call, backend, bytes); !status.ok())
      return call.Finish(ToGrpc(status));
    const auto parse = [parsed, &call](grpc::ByteBuffer& own, bool is_polling) {
      const Backend& backend = parsed->backend;
      Request request;
      const absl::StatusOr<MessageWork> work = MeasureWork(backend.memory.budget(), own, request);
      if (!work.ok()) return call.Finish(ToGrpc(work.status()));
      const WorkMemory::Lease lease(backend.memory.work(), work->leased_bytes());
      const absl::Status status =
          WithinMemory([&] { return ParseRequest(call, own, backend.max_message_bytes, request); });
      status.ok() ? parsed->Handle(call, request, *work, is_polling) : call.Finish(ToGrpc(status));
    };
    if (bytes.Length() <= kMaxInlineBytes) return parse(bytes, true);
    ScheduleCall(backend.workers, WorkSize::kSmall, call,
                 [parse, own = std::move(bytes)]() mutable { parse(own, false); });
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
                          PlacementRule<Request> placement_of,
                          AwaitRule<Request> awaits = nullptr) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return backend.drain.draining() ? DrainingError()
                                          : body(backend.store, request, response);
        },
        placement_of, awaits);
  }
  // For a body whose answer depends on what the caller may do: null if nothing is checked.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const CallAccess*, const Request&,
                                               Response&),
                          PlacementRule<Request> placement_of) const {
    return OnRequest<Request>(
        backend_,
        [backend = backend_, body](Call& call, const Request& request) {
          Answer<Response>(call, backend, [&](Response& response) {
            return backend.drain.draining() ? DrainingError()
                                            : body(backend.store, call.access(), request, response);
          });
        },
        placement_of);
  }
  // For a body that looks at the drain itself.
  template <typename Request, typename Response>
  Call::Method operator()(absl::Status (*body)(Store&, const Drain&, const Request&, Response&),
                          PlacementRule<Request> placement_of) const {
    return Make<Request, Response>(
        [backend = backend_, body](const Request& request, Response& response) {
          return body(backend.store, backend.drain, request, response);
        },
        placement_of);
  }

 private:
  template <typename Request, typename Response, typename Body>
  Call::Method Make(Body body, PlacementRule<Request> placement_of,
                    AwaitRule<Request> awaits = nullptr) const {
    return OnRequest<Request>(
        backend_,
        [backend = backend_, body](Call& call, const Request& request) {
          Answer<Response>(call, backend,
                           [&](Response& response) { return body(request, response); });
        },
        placement_of, awaits);
  }

  // Finishes the call with what `fill` makes of a response, or with its error.
  template <typename Response, typename Fill>
  static void Answer(Call& call, const Backend& backend, const Fill& fill) {
    grpc::ByteBuffer bytes;
    absl::Status status = WithinMemory([&] {
      Response response;
      absl::Status filled = fill(response);
      return filled.ok() ? SerializeMessage(response, bytes) : filled;
    });
    if (status.ok()) status = HoldAnswer(call, backend, bytes);
    FinishUnary(call, status, bytes);
  }

  const Backend backend_;
};

}  // namespace perceptrond
