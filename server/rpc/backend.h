// What every method of the server works with: the store, the workers, the limits, and the drain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class InFlightMemory;
class Model;
class Store;

// Threads for work that takes long or blocks, and would keep a polling thread from its queue.
// Thread contract: safe for any number of threads.
class Workers {
 public:
  using Work = absl::AnyInvocable<void()>;

  explicit Workers(int threads);
  // Waits until all scheduled work is done.
  ~Workers();

  // Runs `work` on one of the threads, in the order of the calls. Of several idle threads the one
  // that was busy last gets it, since its processor's caches are warm.
  void Schedule(Work work) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work waits for a thread.
  bool HasBacklog() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const { return threads_.size(); }
  // The number of threads that have no work.
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the next work of a thread; null if the thread must end.
  Work Next() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::deque<Work> backlog_ ABSL_GUARDED_BY(mutex_);
  // Where each idle thread receives its next work; the thread that was busy last is at the end.
  std::vector<Work*> idle_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since the threads use all the others.
  std::vector<std::thread> threads_;
};

// The end of serving: in-flight calls are waited for, and streams are notified so that they finish
// what they have accepted and end. Thread contract: safe for any number of threads.
class Drain {
 public:
  // Registers a call that outlives its handler. Calls `listener` once when draining begins, or at
  // once if it has begun. The listener may still run while Remove returns: it must own what it
  // uses. Sets `id`, which is for Remove, before the listener can run.
  void Add(std::function<void()> listener, uint64_t& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins draining: notifies all registered calls.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until all registered calls are removed, for at most `timeout`; returns whether they are.
  bool AwaitAllRemoved(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no call was registered for `quiet_period`, for at most `timeout`.
  void AwaitQuiet(absl::Duration quiet_period, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Registers a call without a listener for as long as this object exists.
  class InFlightCall {
   public:
    explicit InFlightCall(Drain& drain) : drain_(drain) {
      drain_.Add([] {}, id_);
    }
    ~InFlightCall() { drain_.Remove(id_); }
    InFlightCall(const InFlightCall&) = delete;
    InFlightCall& operator=(const InFlightCall&) = delete;

   private:
    Drain& drain_;
    uint64_t id_ = 0;
  };

 private:
  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(mutex_);
};

// How much a stream may have unanswered before the server stops reading it, so that gRPC's flow
// control holds the sender back.
struct StreamLimits {
  size_t messages = 1024;
  // What unanswered messages keep in memory: their answers, and their share of the updates on their
  // way to the journal.
  size_t bytes = 16 << 20;
};

// Everything referred to must outlive the calls.
struct Backend {
  Store& store;
  Drain& drain;
  Workers& workers;
  InFlightMemory& memory;
  // The largest request message, in bytes.
  size_t max_message_bytes = 0;
  StreamLimits stream_limits = {};
};

// The largest message that a polling thread handles itself, in bytes: it takes about as long as
// waking a worker.
inline constexpr size_t kMaxInlineBytes = 8 << 10;

// Whether a polling thread may answer small requests to the model of this full name: the model is
// in memory, and a row costs about its number of features (one weight vector, no feature map, no
// components). Any thread.
bool CanRunInline(Store& store, absl::string_view model);
// The same for a model that was looked up; false for null.
bool CanRunInline(const Model* model);

// The same for a request with a field `model`.
template <typename Request>
bool RequestCanRunInline(Store& store, const Request& request) {
  return CanRunInline(store, request.model());
}

}  // namespace perceptrond
