// Accepts all calls of a server, of whatever method, on one completion queue and has them handled.
//
// gRPC's callback services pass the polling role from thread to thread at every event, which on few
// processors costs as much as receiving half a message (docs/adr/0027-one-queue.md). Here only as
// many threads poll as are needed to keep up, and no other thread in the process does.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/sync/mutex.h"
#include "server/rpc/call.h"

namespace perceptrond {

// How a polling thread waits for events.
struct Spin {
  // How long a thread may poll for the next event before it sleeps; see spin_policy.h. 0: it sleeps
  // at once.
  std::chrono::nanoseconds max_duration{0};
  // Whether the server is idle: no work in progress, and no client waiting for an answer. Any
  // thread may call it.
  std::function<bool()> is_idle = [] { return true; };
};

// Thread contract: AddTo, Start and Stop by one thread.
class Acceptor {
 public:
  // Returns the method for a path on the wire. Any thread may call it. The method must outlive the
  // calls.
  using Route = std::function<const Call::Method&(const std::string& path)>;

  explicit Acceptor(Route route) : route_(std::move(route)) {}
  // Must have been stopped if it was started. The grpc::Server, if there is one, must be destroyed
  // first.
  ~Acceptor();

  // To be called before the server is built.
  void AddTo(grpc::ServerBuilder& builder);
  // To be called once, after the server is built. Starts `threads` polling threads.
  void Start(int threads, Spin spin = {});
  // Shuts the server down: accepts no more calls, cancels those in flight, and waits until all of
  // them are done. After it returns nothing given to this object is used any more.
  void Stop(grpc::Server& server) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Call;

  void Request(grpc::GenericServerContext& context, grpc::GenericServerAsyncReaderWriter& stream,
               void* tag);
  const Call::Method& Find(const std::string& path) const { return route_(path); }
  grpc::CompletionQueue* queue() { return queue_.get(); }
  // Creates the object that waits for the next call, unless the server is shutting down.
  void AwaitCall() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnCallDestroyed() ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll();
  void ShutDownQueue();

  const Route route_;
  Spin spin_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  bool queue_shut_down_ = false;
  // Also held while a call is requested: gRPC may never answer a request that is made while it
  // shuts down.
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Call objects that exist.
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
