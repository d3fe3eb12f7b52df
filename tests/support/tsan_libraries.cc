// Shows ThreadSanitizer what orders threads inside Abseil and gRPC, whose libraries are not
// compiled with it. Linked into every program of such a build, these functions stand before the
// libraries' own of the same names, which they call: what a thread did before it gave up a lock,
// notified, or started an operation happened before what another does after it took the lock, saw
// the notification, or received the operation's completion.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace {

// A time or a duration of Abseil's, as it is passed.
struct Moment {
  int64_t high;
  uint32_t low;
};

template <typename Function>
Function* Library(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// A method whose first parameter is what orders threads.
#define BEFORE(what) __tsan_release(const_cast<void*>(static_cast<const void*>(what)))
#define AFTER(what) __tsan_acquire(const_cast<void*>(static_cast<const void*>(what)))
#define IN_FRONT_OF(symbol, name, result, parameters, arguments, before, after) \
  extern "C" result name parameters __asm__(symbol);                            \
  extern "C" result name parameters {                                           \
    static auto* const library = Library<result parameters>(symbol);            \
    before;                                                                     \
    struct Finally {                                                            \
      void* what;                                                               \
      ~Finally() { after; }                                                     \
    } finally{self};                                                            \
    return library arguments;                                                   \
  }
#define NOTHING static_cast<void>(0)
#define RELEASES(symbol, name) \
  IN_FRONT_OF(symbol, name, void, (void* self), (self), BEFORE(self), NOTHING)
#define ACQUIRES(symbol, name) \
  IN_FRONT_OF(symbol, name, void, (void* self), (self), NOTHING, AFTER(what))
#define TRIES(symbol, name) \
  IN_FRONT_OF(symbol, name, bool, (void* self), (self), NOTHING, AFTER(what))
// Waits for a condition: gives the lock up and takes it again.
#define WAITS(symbol, name) \
  IN_FRONT_OF(symbol, name, void, (void* self, void* x), (self, x), BEFORE(self), AFTER(what))
#define WAITS_UNTIL(symbol, name)                                                        \
  IN_FRONT_OF(symbol, name, bool, (void* self, void* x, Moment until), (self, x, until), \
              BEFORE(self), AFTER(what))

#define MUTEX "_ZN4absl7debian35Mutex"
ACQUIRES(MUTEX "4LockEv", TsanMutexLock)
ACQUIRES(MUTEX "10ReaderLockEv", TsanMutexReaderLock)
RELEASES(MUTEX "6UnlockEv", TsanMutexUnlock)
RELEASES(MUTEX "12ReaderUnlockEv", TsanMutexReaderUnlock)
TRIES(MUTEX "7TryLockEv", TsanMutexTryLock)
TRIES(MUTEX "13ReaderTryLockEv", TsanMutexReaderTryLock)
WAITS(MUTEX "5AwaitERKNS0_9ConditionE", TsanMutexAwait)
WAITS(MUTEX "8LockWhenERKNS0_9ConditionE", TsanMutexLockWhen)
WAITS(MUTEX "14ReaderLockWhenERKNS0_9ConditionE", TsanMutexReaderLockWhen)
WAITS_UNTIL(MUTEX "16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", TsanAwaitTimeout)
WAITS_UNTIL(MUTEX "17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", TsanAwaitDeadline)
WAITS_UNTIL(MUTEX "19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE", TsanLockTimeout)
WAITS_UNTIL(MUTEX "20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", TsanLockDeadline)

// Of a condition variable the second parameter is the lock.
#define CONDITION "_ZN4absl7debian37CondVar"
IN_FRONT_OF(CONDITION "4WaitEPNS0_5MutexE", TsanWait, void, (void* variable, void* self),
            (variable, self), BEFORE(self), AFTER(what))
IN_FRONT_OF(CONDITION "15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", TsanWaitTimeout, bool,
            (void* variable, void* self, Moment until), (variable, self, until), BEFORE(self),
            AFTER(what))
IN_FRONT_OF(CONDITION "16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", TsanWaitDeadline, bool,
            (void* variable, void* self, Moment until), (variable, self, until), BEFORE(self),
            AFTER(what))

#define NOTIFICATION "absl7debian312Notification"
RELEASES("_ZN4" NOTIFICATION "6NotifyEv", TsanNotify)
ACQUIRES("_ZNK4" NOTIFICATION "19WaitForNotificationEv", TsanWaitNotified)
IN_FRONT_OF("_ZNK4" NOTIFICATION "30WaitForNotificationWithTimeoutENS0_8DurationE",
            TsanNotifiedTimeout, bool, (void* self, Moment until), (self, until), NOTHING,
            AFTER(what))
IN_FRONT_OF("_ZN4absl7debian315BlockingCounter14DecrementCountEv", TsanDecrement, bool,
            (void* self), (self), BEFORE(self), NOTHING)
ACQUIRES("_ZN4absl7debian315BlockingCounter4WaitEv", TsanWaitCount)

// ---- gRPC: an operation is known by its tag ----

namespace {

// Completes an operation of the callback interface in the stead of the functor that it was started
// with.
struct Completion : grpc_completion_queue_functor {
  explicit Completion(grpc_completion_queue_functor* of) : original(of) {
    functor_run = &Run;
    inlineable = of->inlineable;
    BEFORE(this);
  }
  static void Run(grpc_completion_queue_functor* self, int ok) {
    auto* const completion = static_cast<Completion*>(self);
    AFTER(completion);
    grpc_completion_queue_functor* const original = completion->original;
    delete completion;
    original->functor_run(original, ok);
  }
  grpc_completion_queue_functor* const original;
};

// Queues and calls of the callback interface.
class CallbackObjects {
 public:
  void Add(void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.insert(object);
  }
  void Remove(void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.erase(object);
  }
  bool Has(void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return objects_.count(object) != 0;
  }
  static CallbackObjects& Get() {
    static auto& objects = *new CallbackObjects;
    return objects;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<void*> objects_;
};

grpc_call* AddCall(grpc_completion_queue* queue, grpc_call* call) {
  if (CallbackObjects::Get().Has(queue)) {
    CallbackObjects::Get().Add(call);
  } else {
    CallbackObjects::Get().Remove(call);
  }
  return call;
}

}  // namespace

extern "C" {

grpc_completion_queue* grpc_completion_queue_create_for_callback(
    grpc_completion_queue_functor* shutdown, void* reserved) {
  static auto* const library = Library<decltype(grpc_completion_queue_create_for_callback)>(
      "grpc_completion_queue_create_for_callback");
  grpc_completion_queue* const queue = library(shutdown, reserved);
  CallbackObjects::Get().Add(queue);
  return queue;
}

grpc_call* grpc_channel_create_call(grpc_channel* channel, grpc_call* parent, uint32_t mask,
                                    grpc_completion_queue* queue, grpc_slice method,
                                    const grpc_slice* host, gpr_timespec deadline, void* reserved) {
  static auto* const library =
      Library<decltype(grpc_channel_create_call)>("grpc_channel_create_call");
  return AddCall(queue, library(channel, parent, mask, queue, method, host, deadline, reserved));
}

grpc_call* grpc_channel_create_registered_call(grpc_channel* channel, grpc_call* parent,
                                               uint32_t mask, grpc_completion_queue* queue,
                                               void* handle, gpr_timespec deadline,
                                               void* reserved) {
  static auto* const library =
      Library<decltype(grpc_channel_create_registered_call)>("grpc_channel_create_registered_call");
  return AddCall(queue, library(channel, parent, mask, queue, handle, deadline, reserved));
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* operations, size_t count,
                                      void* tag, void* reserved) {
  static auto* const library = Library<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  if (!CallbackObjects::Get().Has(call)) {
    BEFORE(tag);
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
  static auto* const library =
      Library<decltype(grpc_server_request_call)>("grpc_server_request_call");
  BEFORE(tag);
  return library(server, call, details, metadata, bound, notified, tag);
}

grpc_call_error grpc_server_request_registered_call(grpc_server* server, void* method,
                                                    grpc_call** call, gpr_timespec* deadline,
                                                    grpc_metadata_array* metadata,
                                                    grpc_byte_buffer** payload,
                                                    grpc_completion_queue* bound,
                                                    grpc_completion_queue* notified, void* tag) {
  static auto* const library =
      Library<decltype(grpc_server_request_registered_call)>("grpc_server_request_registered_call");
  BEFORE(tag);
  return library(server, method, call, deadline, metadata, payload, bound, notified, tag);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const library =
      Library<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  const grpc_event event = library(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) AFTER(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const library =
      Library<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  const grpc_event event = library(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) AFTER(event.tag);
  return event;
}

}  // extern "C"
