// Takes a server's calls, of whatever method, from one completion queue, and has them answered.
//
// gRPC's own callback services hand the work of polling from thread to thread at every event, which
// on few processors costs as much as receiving half a message (docs/adr/0027-one-queue.md). Here as
// few threads poll as keep up, and nothing else in the process does.
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

// How a thread that polls waits.
struct Spin {
  // How long a thread may look for the next event before it sleeps; see spin_policy.h.
  std::chrono::nanoseconds most{0};
  // Whether nothing is being done and nobody waits for an answer. Any thread may call it.
  std::function<bool()> quiet = [] { return true; };
};

// Thread contract: AddTo, Start and Stop by one thread.
class Acceptor {
 public:
  // What answers a path as on the wire; any thread may call it. Must outlive the calls.
  using Route = std::function<const Call::Method&(const std::string& path)>;

  explicit Acceptor(Route route) : route_(std::move(route)) {}
  // Must have been stopped if it was started. The server goes first, if there was one.
  ~Acceptor();

  // Before the server is built.
  void AddTo(grpc::ServerBuilder& builder);
  // After that, and once: `threads` poll.
  void Start(int threads, Spin spin = {});
  // Shuts the server down: takes no more calls, cancels those under way, and waits until all of
  // them are over. Nothing that was given to this is used any more then.
  void Stop(grpc::Server& server) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Call;

  void Request(grpc::GenericServerContext& context, grpc::GenericServerAsyncReaderWriter& stream,
               void* tag);
  const Call::Method& Find(const std::string& path) const { return route_(path); }
  grpc::CompletionQueue* queue() { return queue_.get(); }
  // Awaits another call, unless the server is being shut down.
  void AwaitCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // A call that was awaited is over, or will not come.
  void Gone() ABSL_LOCKS_EXCLUDED(mutex_);
  void Poll();
  // Nothing more will come.
  void EndQueue();

  const Route route_;
  Spin spin_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
  bool ended_ = false;
  Mutex mutex_;
  // Held while a call is asked for, too: what is asked for while gRPC shuts down may never be
  // answered.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
