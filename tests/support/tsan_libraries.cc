// Tells ThreadSanitizer what orders threads inside Abseil and gRPC. Debian compiles their libraries
// without the sanitizer, which therefore does not see their locks and queues and would report races
// that these exclude. Every program of a build with the sanitizer links this file: its functions
// have the names of the libraries' functions, take their place when the program is loaded, and call
// them.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

// Defines the function `name` in place of the library's `symbol`.
#define REPLACE(symbol, name, result, ...)             \
  extern "C" result name(__VA_ARGS__) __asm__(symbol); \
  extern "C" result name(__VA_ARGS__)
// The library's function of the same name and type.
#define LIBRARY(symbol, name) \
  static auto* const library = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, symbol))

namespace {

// absl::Time and absl::Duration, as they are passed.
struct AbslTime {
  int64_t high;
  uint32_t low;
};

}  // namespace

// ---- absl::Mutex and absl::CondVar, as the libraries use them ----

// The project's own locks report themselves (core/sync/mutex.h), and the sanitizer ignores what is
// reported in between. Of the libraries' locks every release precedes every later acquisition.
#define MUTEX "_ZN4absl7debian35Mutex"
#define CONDITION "_ZN4absl7debian37CondVar"
#define LOCKS(symbol, name)                        \
  REPLACE(MUTEX symbol, name, void, void* mutex) { \
    LIBRARY(MUTEX symbol, name);                   \
    library(mutex);                                \
    __tsan_acquire(mutex);                         \
  }
#define TRIES(symbol, name)                        \
  REPLACE(MUTEX symbol, name, bool, void* mutex) { \
    LIBRARY(MUTEX symbol, name);                   \
    const bool locked = library(mutex);            \
    if (locked) __tsan_acquire(mutex);             \
    return locked;                                 \
  }
#define UNLOCKS(symbol, name)                      \
  REPLACE(MUTEX symbol, name, void, void* mutex) { \
    LIBRARY(MUTEX symbol, name);                   \
    __tsan_release(mutex);                         \
    library(mutex);                                \
  }
// Release the mutex, wait, and take it again.
#define AWAITS(symbol, name)                                        \
  REPLACE(MUTEX symbol, name, void, void* mutex, void* condition) { \
    LIBRARY(MUTEX symbol, name);                                    \
    __tsan_release(mutex);                                          \
    library(mutex, condition);                                      \
    __tsan_acquire(mutex);                                          \
  }
#define AWAITS_UNTIL(symbol, name)                                                  \
  REPLACE(MUTEX symbol, name, bool, void* mutex, void* condition, AbslTime until) { \
    LIBRARY(MUTEX symbol, name);                                                    \
    __tsan_release(mutex);                                                          \
    const bool holds = library(mutex, condition, until);                            \
    __tsan_acquire(mutex);                                                          \
    return holds;                                                                   \
  }
#define WAITS_UNTIL(symbol, name)                                                      \
  REPLACE(CONDITION symbol, name, bool, void* variable, void* mutex, AbslTime until) { \
    LIBRARY(CONDITION symbol, name);                                                   \
    __tsan_release(mutex);                                                             \
    const bool late = library(variable, mutex, until);                                 \
    __tsan_acquire(mutex);                                                             \
    return late;                                                                       \
  }

LOCKS("4LockEv", TsanLock)
LOCKS("10ReaderLockEv", TsanReaderLock)
TRIES("7TryLockEv", TsanTryLock)
TRIES("13ReaderTryLockEv", TsanReaderTryLock)
UNLOCKS("6UnlockEv", TsanUnlock)
UNLOCKS("12ReaderUnlockEv", TsanReaderUnlock)
AWAITS("5AwaitERKNS0_9ConditionE", TsanAwait)
AWAITS("8LockWhenERKNS0_9ConditionE", TsanLockWhen)
AWAITS("14ReaderLockWhenERKNS0_9ConditionE", TsanReaderLockWhen)
AWAITS_UNTIL("16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", TsanAwaitTimeout)
AWAITS_UNTIL("17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", TsanAwaitDeadline)
AWAITS_UNTIL("19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE", TsanLockTimeout)
AWAITS_UNTIL("20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", TsanLockDeadline)
WAITS_UNTIL("15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", TsanWaitTimeout)
WAITS_UNTIL("16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", TsanWaitDeadline)
REPLACE(CONDITION "4WaitEPNS0_5MutexE", TsanWait, void, void* variable, void* mutex) {
  LIBRARY(CONDITION "4WaitEPNS0_5MutexE", TsanWait);
  __tsan_release(mutex);
  library(variable, mutex);
  __tsan_acquire(mutex);
}

// ---- absl::Notification, absl::BlockingCounter, absl::Status ----

#define NOTIFICATION "absl7debian312Notification"
REPLACE("_ZN4" NOTIFICATION "6NotifyEv", TsanNotify, void, void* notification) {
  LIBRARY("_ZN4" NOTIFICATION "6NotifyEv", TsanNotify);
  __tsan_release(notification);
  // HasBeenNotified() is inline and loads the flag, which follows the mutex.
  __tsan_release(static_cast<char*>(notification) + sizeof(intptr_t));
  library(notification);
}
REPLACE("_ZNK4" NOTIFICATION "19WaitForNotificationEv", TsanWaitNotified, void,
        void* notification) {
  LIBRARY("_ZNK4" NOTIFICATION "19WaitForNotificationEv", TsanWaitNotified);
  library(notification);
  __tsan_acquire(notification);
}
#define WAITS_NOTIFIED_UNTIL(symbol, name)                                               \
  REPLACE("_ZNK4" NOTIFICATION symbol, name, bool, void* notification, AbslTime until) { \
    LIBRARY("_ZNK4" NOTIFICATION symbol, name);                                          \
    const bool notified = library(notification, until);                                  \
    if (notified) __tsan_acquire(notification);                                          \
    return notified;                                                                     \
  }
WAITS_NOTIFIED_UNTIL("30WaitForNotificationWithTimeoutENS0_8DurationE", TsanNotifiedTimeout)
WAITS_NOTIFIED_UNTIL("31WaitForNotificationWithDeadlineENS0_4TimeE", TsanNotifiedDeadline)

#define COUNTER "_ZN4absl7debian315BlockingCounter"
REPLACE(COUNTER "14DecrementCountEv", TsanDecrementCount, bool, void* counter) {
  LIBRARY(COUNTER "14DecrementCountEv", TsanDecrementCount);
  __tsan_release(counter);
  return library(counter);
}
REPLACE(COUNTER "4WaitEv", TsanWaitCount, void, void* counter) {
  LIBRARY(COUNTER "4WaitEv", TsanWaitCount);
  library(counter);
  __tsan_acquire(counter);
}

// The last of those who share a status deletes it.
#define UNREF_STATUS "_ZN4absl7debian36Status15UnrefNonInlinedEm"
REPLACE(UNREF_STATUS, TsanUnrefStatus, void, uintptr_t status) {
  LIBRARY(UNREF_STATUS, TsanUnrefStatus);
  __tsan_release(reinterpret_cast<void*>(status));
  __tsan_acquire(reinterpret_cast<void*>(status));
  library(status);
}

// ---- gRPC: what precedes the start of an operation precedes its completion, by its tag ----

namespace {

// Completes an operation of the callback interface in place of the functor that started it.
struct Completion : grpc_completion_queue_functor {
  explicit Completion(grpc_completion_queue_functor* of) : original(of) {
    functor_run = &Run;
    inlineable = of->inlineable;
    __tsan_release(this);
  }
  static void Run(grpc_completion_queue_functor* self, int ok) {
    auto* const completion = static_cast<Completion*>(self);
    __tsan_acquire(completion);
    grpc_completion_queue_functor* const original = completion->original;
    delete completion;
    original->functor_run(original, ok);
  }
  grpc_completion_queue_functor* const original;
};

// The queues of the callback interface, and the references to their calls. The tags of the other
// calls are no functors. Thread-safe.
class CallbackObjects {
 public:
  static CallbackObjects& Get() {
    static auto& objects = *new CallbackObjects;
    return objects;
  }
  void AddQueue(grpc_completion_queue* queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.insert(queue);
  }
  void RemoveQueue(grpc_completion_queue* queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.erase(queue);
  }
  grpc_call* Add(grpc_completion_queue* queue, grpc_call* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queues_.count(queue) != 0) calls_[call] = 1;
    return call;
  }
  void Ref(grpc_call* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = calls_.find(call); found != calls_.end()) ++found->second;
  }
  void Unref(grpc_call* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(call);
    if (found != calls_.end() && --found->second == 0) calls_.erase(found);
  }
  bool Has(grpc_call* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_.count(call) != 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<grpc_completion_queue*> queues_;
  std::unordered_map<grpc_call*, int> calls_;
};

}  // namespace

#define LIBRARY_OF(name) LIBRARY(#name, name)

extern "C" {

grpc_completion_queue* grpc_completion_queue_create_for_callback(
    grpc_completion_queue_functor* shutdown, void* reserved) {
  LIBRARY_OF(grpc_completion_queue_create_for_callback);
  grpc_completion_queue* const queue = library(shutdown, reserved);
  CallbackObjects::Get().AddQueue(queue);
  return queue;
}

void grpc_completion_queue_destroy(grpc_completion_queue* queue) {
  LIBRARY_OF(grpc_completion_queue_destroy);
  CallbackObjects::Get().RemoveQueue(queue);
  library(queue);
}

grpc_call* grpc_channel_create_call(grpc_channel* channel, grpc_call* parent, uint32_t mask,
                                    grpc_completion_queue* queue, grpc_slice method,
                                    const grpc_slice* host, gpr_timespec deadline, void* reserved) {
  LIBRARY_OF(grpc_channel_create_call);
  return CallbackObjects::Get().Add(
      queue, library(channel, parent, mask, queue, method, host, deadline, reserved));
}

grpc_call* grpc_channel_create_registered_call(grpc_channel* channel, grpc_call* parent,
                                               uint32_t mask, grpc_completion_queue* queue,
                                               void* handle, gpr_timespec deadline,
                                               void* reserved) {
  LIBRARY_OF(grpc_channel_create_registered_call);
  return CallbackObjects::Get().Add(
      queue, library(channel, parent, mask, queue, handle, deadline, reserved));
}

void grpc_call_ref(grpc_call* call) {
  LIBRARY_OF(grpc_call_ref);
  CallbackObjects::Get().Ref(call);
  library(call);
}

void grpc_call_unref(grpc_call* call) {
  LIBRARY_OF(grpc_call_unref);
  CallbackObjects::Get().Unref(call);
  library(call);
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* operations, size_t count,
                                      void* tag, void* reserved) {
  LIBRARY_OF(grpc_call_start_batch);
  if (!CallbackObjects::Get().Has(call)) {
    __tsan_release(tag);
    return library(call, operations, count, tag, reserved);
  }
  auto* const completion = new Completion(static_cast<grpc_completion_queue_functor*>(tag));
  const grpc_call_error error = library(
      call, operations, count, static_cast<grpc_completion_queue_functor*>(completion), reserved);
  if (error != GRPC_CALL_OK) delete completion;
  return error;
}

grpc_call_error grpc_server_request_call(grpc_server* server, grpc_call** call,
                                         grpc_call_details* details, grpc_metadata_array* metadata,
                                         grpc_completion_queue* bound,
                                         grpc_completion_queue* notified, void* tag) {
  LIBRARY_OF(grpc_server_request_call);
  __tsan_release(tag);
  return library(server, call, details, metadata, bound, notified, tag);
}

grpc_call_error grpc_server_request_registered_call(grpc_server* server, void* method,
                                                    grpc_call** call, gpr_timespec* deadline,
                                                    grpc_metadata_array* metadata,
                                                    grpc_byte_buffer** payload,
                                                    grpc_completion_queue* bound,
                                                    grpc_completion_queue* notified, void* tag) {
  LIBRARY_OF(grpc_server_request_registered_call);
  __tsan_release(tag);
  return library(server, method, call, deadline, metadata, payload, bound, notified, tag);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  LIBRARY_OF(grpc_completion_queue_next);
  const grpc_event event = library(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  LIBRARY_OF(grpc_completion_queue_pluck);
  const grpc_event event = library(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"
