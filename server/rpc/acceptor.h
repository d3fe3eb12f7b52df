// Accepts all calls of a server, of whatever method, on one completion queue, and has the code
// handle them that the router names for their paths.
//
// gRPC's callback services pass the polling role from thread to thread at every event, which on few
// processors costs as much as receiving half a message (docs/adr/0027-one-queue.md). Here only as
// many threads poll as are needed to keep up, and no other thread in the process does.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/sync/cancellation.h"
#include "core/sync/mutex.h"
#include "server/rpc/call.h"
#include "server/rpc/connections.h"
#include "server/rpc/slow_calls.h"

namespace perceptrond {

class AccessControl;
class Admission;

// Decides when a polling thread spins instead of sleeping: while requests arrive one at a time,
// each soon after the last was answered. Waking a sleeping processor takes longer than answering
// such a request. Under more load spinning gains nothing: what arrives while the thread sleeps is
// handled right after it wakes, in one go (docs/adr/0027-one-queue.md).
//
// A credit that lone requests earn and fruitless spinning costs. A plain value; not thread-safe.
// O(1) throughout.
class SpinPolicy {
 public:
  using Duration = std::chrono::nanoseconds;

  // Never spins for longer than `max_duration`; 0: never spins.
  explicit SpinPolicy(Duration max_duration) : max_duration_(max_duration) {}

  // How long to spin for the next event before sleeping.
  Duration duration() const { return credit_ >= kTimeoutCost ? max_duration_ : Duration::zero(); }

  // No event arrived during a spin.
  void OnTimeout() { credit_ -= kTimeoutCost; }
  // An event arrived after waiting for `waited`, spinning or asleep.
  void OnEvent(Duration waited) {
    if (waited >= kMinWait) {
      const bool alone =
          events_ <= kMaxEvents && idle_ && waited <= kMaxWaitInSpins * max_duration_;
      credit_ = alone ? credit_ + (credit_ < kMaxCredit ? 1 : 0) : 0;
      events_ = 0;
    }
    ++events_;
  }
  // The event was handled. `is_idle` says whether no work is in progress and no client waits; it is
  // called only where the answer matters.
  void OnHandled(absl::FunctionRef<bool()> is_idle) {
    idle_ = max_duration_ > Duration::zero() && events_ <= kMaxEvents && is_idle();
    if (!idle_) credit_ = 0;
  }

 private:
  // A shorter wait is none: the event was in the queue already.
  static constexpr Duration kMinWait = std::chrono::microseconds(5);
  // The events of one request: its call, its message, its end, and its answer.
  static constexpr int kMaxEvents = 8;
  // In units of the longest spin. A thread that sleeps waits for two processors to wake, besides
  // the time that the client takes between requests.
  static constexpr int kMaxWaitInSpins = 4;
  // A lone request earns 1: so at most one request in eight costs a fruitless spin.
  static constexpr int kTimeoutCost = 8;
  static constexpr int kMaxCredit = 64;

  const Duration max_duration_;
  int credit_ = 0;
  // Events since the last wait.
  int events_ = 0;
  bool idle_ = false;
};

// Maps the path of a call to the code that handles it.
//
// Thread contract: AddService before the first call; then any thread may call Find.
class Router {
 public:
  struct NamedMethod {
    const char* name;
    Call::Method method;
  };

  Router();

  // `service` is the full name of a linked-in proto service. `methods` must be exactly the methods
  // of that service, or the process aborts.
  void AddService(const std::string& service, std::vector<NamedMethod> methods);

  // The added services, in that order.
  const std::vector<const google::protobuf::ServiceDescriptor*>& services() const {
    return services_;
  }
  // `path` is the path on the wire. For an unknown path: a method that answers UNIMPLEMENTED
  // (UNKNOWN_METHOD).
  const Call::Method& Find(const std::string& path) const;

 private:
  std::vector<const google::protobuf::ServiceDescriptor*> services_;
  absl::flat_hash_map<std::string, Call::Method> methods_;
  const Call::Method unknown_;
};

// How a polling thread waits for events.
struct Spin {
  // How long a thread may poll for the next event before it sleeps; see SpinPolicy. 0: it sleeps
  // at once.
  std::chrono::nanoseconds max_duration{0};
  // Whether the server is idle: no work in progress, and no client waiting for an answer. Any
  // thread may call it.
  std::function<bool()> is_idle = [] { return true; };
};

// Adds the service grpc.reflection.v1alpha.ServerReflection: descriptors of services and messages.
// It lists the router's services, including this one and those added later, and describes every
// proto that is linked in. The router must outlive its calls.
void AddReflectionService(Router& router);

// Thread contract: AddTo, Start and Stop by one thread.
class Acceptor {
 public:
  // Returns the method for a path on the wire. Any thread may call it. The method must outlive the
  // calls.
  using Route = std::function<const Call::Method&(const std::string& path)>;

  // `connections`, if there are any, count the calls and may refuse them; they must outlive this.
  explicit Acceptor(Route route, Connections* connections = nullptr)
      : route_(std::move(route)), connections_(connections) {}
  // Must have been stopped if it was started. The grpc::Server, if there is one, must be destroyed
  // first.
  ~Acceptor();

  // To be called before Start, with what decides whether a call may be made. Without it each may.
  void SetAdmission(Admission* admission) { admission_ = admission; }
  // For a port of other servers, which have checked what they pass on: sets the rules by which this
  // server looks up what the principals that they state may do.
  void SetAccess(const AccessControl* access) { access_ = access; }
  // To be called before the server is built.
  void AddTo(grpc::ServerBuilder& builder);
  // To be called once, after the server is built. Starts `threads` polling threads.
  void Start(int threads, Spin spin = {});
  // Has the work of all calls stop, with StopReason::kDraining. Any thread may call it.
  void CancelCalls() { cancellation_.Cancel(StopReason::kDraining); }
  // Cancelled by CancelCalls.
  const CancellationToken& cancellation() const { return cancellation_; }
  // Shuts the server down: accepts no more calls, cancels those in flight, and waits until all of
  // them are done. After it returns nothing given to this object is used any more.
  void Stop(grpc::Server& server) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the calls whose one request has not arrived within `timeout`: see
  // Reactor::OnRequestTimeout. Any thread, until Stop. O(calls).
  void EndLateRequests(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Where calls that took long are logged. Any thread.
  SlowCallLog& slow_calls() { return slow_calls_; }

 private:
  friend class Call;

  void Request(grpc::GenericServerContext& context, grpc::GenericServerAsyncReaderWriter& stream,
               void* tag);
  const Call::Method& Find(const std::string& path) const { return route_(path); }
  Admission* admission() const { return admission_; }
  const AccessControl* access() const { return access_; }
  grpc::CompletionQueue* queue() { return queue_.get(); }
  // Creates the object that waits for the next call, unless the server is shutting down.
  void AwaitCall() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCallDestroyed(Call& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll();
  void ShutDownQueue();

  const Route route_;
  CancellationToken cancellation_;
  Connections* const connections_;
  Admission* admission_ = nullptr;
  const AccessControl* access_ = nullptr;
  Spin spin_;
  SlowCallLog slow_calls_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  bool queue_shut_down_ = false;
  // Also held while a call is requested: gRPC may never answer a request that is made while it
  // shuts down.
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The first of the call objects that exist, which are linked to one another.
  Call* calls_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace perceptrond
