// One RPC of any kind, as raw bytes: the operations that a method's code starts, the callbacks it
// receives, and a writer for the messages of a server stream.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/sync/cancellation.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/connections.h"
#include "server/rpc/message.h"
#include "server/rpc/slow_calls.h"
#include "server/rpc/trace_context.h"

namespace perceptrond {

class Acceptor;
class CallAccess;
class CallAliases;
class Caller;

// An operation that completes on the completion queue; the queue's tags point to these.
class Event {
 public:
  // `ok` is false if the operation failed.
  virtual void OnEvent(bool ok) = 0;

 protected:
  ~Event() = default;
};

// Has what Call::FlushLater was called for on this polling thread. It is null on other threads.
inline constinit thread_local std::vector<Event*>* events_to_flush = nullptr;

// Receives the callbacks of one call. Callbacks must not block: the polling thread that runs them
// serves other calls too (Workers in server/rpc/backend.h run what takes longer).
//
// Thread contract: OnReadDone, OnWriteDone, OnAlarm, OnFlush and OnCancel may run at the same time as one
// another; each of them runs on one thread at a time.
class Reactor {
 public:
  virtual ~Reactor() = default;
  // The read that was started is done. `ok` is false if there is nothing more to read.
  virtual void OnReadDone(bool /*ok*/) {}
  // The write that was started is done. `ok` is false if nothing more can be written.
  virtual void OnWriteDone(bool /*ok*/) {}
  // The alarm expired; `ok` is false if it was cancelled.
  virtual void OnAlarm(bool /*ok*/) {}
  // The events that there were when Call::FlushLater was called are handled.
  virtual void OnFlush() {}
  // The request that Call::StartReadRequest waits for takes too long. Runs on another thread, and at
  // the same time as any other callback.
  virtual void OnRequestTimeout() {}
  // The client cancelled the call or is gone. The call must be finished nevertheless. May also run
  // after Finish.
  virtual void OnCancel() {}
  // The last callback. The call is destroyed after it.
  virtual void OnDone() {}
};

// Exists until the reactor's OnDone has returned, and therefore at least until it is finished.
//
// Thread contract: any thread may start an operation; at most one read, one write and one alarm may
// be pending at a time, and none may be started after Finish or FinishWith. No callback runs from
// within these methods.
class Call {
 public:
  // Handles a new call: binds a reactor, starts the first operation, and does not block.
  using Method = std::function<void(Call&)>;

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // To be called once, before any operation. The call keeps the reactor until after OnDone.
  void Bind(std::shared_ptr<Reactor> reactor) {
    bind_to_ == nullptr ? void(reactor_ = std::move(reactor)) : bind_to_(std::move(reactor));
  }
  // Reads the next message into `message`, which must exist until OnReadDone.
  void StartRead(grpc::ByteBuffer* message);
  // The same for the one request of a call, which may take as long as --receive-timeout.
  void StartReadRequest(grpc::ByteBuffer* message);
  // `more`: another write or the end follows soon and may be sent together with this one. Without a
  // message, before the first one, it fails if the client is gone: a read that fails does not tell
  // that from a client that has sent all.
  void StartWrite(const grpc::ByteBuffer& message, bool more = false);
  // From a callback: has the polling thread call OnFlush as soon as it would wait for another event, at most 200 us later,
  // so that several answers can be sent as one. False, and nothing happens, on a thread that does not poll.
  bool FlushLater();
  void StartAlarm(absl::Time when);
  // Has no effect if the alarm has expired.
  void CancelAlarm();
  // Ends the call. Either this or FinishWith must be called exactly once, with no write pending.
  void Finish(const grpc::Status& status);
  // Sends a last message and ends the call with OK.
  void FinishWith(const grpc::ByteBuffer& message);

  // Whether the call's work should go on: until the client cancels, at most until its deadline, and
  // until the server cancels all calls.
  const CancellationToken& cancellation() const { return cancellation_; }
  // Has the call count its memory within a budget. To be called once, before any operation.
  void UseMemory(InFlightMemory& all) { memory_.emplace(all, *this); }
  CallMemory& memory() { return *memory_; }
  // Sets the memory of answers that are not sent, if the call counts its memory.
  void CountAnswers(size_t bytes) {
    if (memory_.has_value()) memory_->Set(MemoryUse::kAnswers, bytes);
  }
  // Ends the call with this status, also while a write is pending, which fails then. The reactor
  // must finish the call nevertheless. Any thread, as long as the call exists.
  void Abort(grpc::StatusCode code, const std::string& message);

  // Has the reactor end the call as if the client had cancelled it; its end may have another status,
  // of CallAccess. No effect if it is cancelled.
  void EndEarly() {
    cancellation_.Cancel();
    OnBoundOrCancelled(kCancelled);
  }

  const grpc::ServerContext& context() const { return context_; }
  // What the caller may do; null if nothing is checked. Constant after the call's method has begun.
  const CallAccess* access() const { return access_.get(); }
  // Answers the core's questions of what the caller may do: access(), or, where another server of the
  // fleet makes the call, the principal that it states. Null if everything is allowed.
  const Caller* caller() const;
  // The path on the wire: "/perceptron.v1.ModelService/GetModel".
  const std::string& path() const { return context_.method(); }
  // The client's address: "ipv4:127.0.0.1:40622".
  const std::string& peer() const { return peer_; }

  // Started by the methods whose calls are logged if they take long as a whole.
  CallTiming& timing() { return timing_; }
  // Where this call and its messages are logged if they take long.
  SlowCallLog& slow_calls();

 private:
  friend class Acceptor;
  friend class RoutingReactor;

  // Has the next reactor that is bound given to `bind_to`, which passes the callbacks on to it, and
  // the next read return this message, which was read before: so that a reactor can read a call's
  // first message and leave the call to its method.
  void HandOver(std::function<void(std::shared_ptr<Reactor>)> bind_to, grpc::ByteBuffer& message);

  // An event that calls one of the call's methods.
  template <void (Call::*callback)(bool)>
  class CallEvent final : public Event {
   public:
    explicit CallEvent(Call& call) : call_(call) {}
    void OnEvent(bool ok) override {
      (call_.*callback)(ok);
      call_.Release();
    }

   private:
    Call& call_;
  };

  // Waits for the next incoming call. Deletes itself after its last event.
  explicit Call(Acceptor& acceptor);
  ~Call();

  void OnAccepted(bool ok);
  void OnReadDone(bool ok);
  void OnReturned(bool ok);
  void OnWriteDone(bool ok);
  void OnAlarm(bool ok) { reactor_->OnAlarm(ok); }
  void OnFlush(bool /*ok*/) { reactor_->OnFlush(); }
  void OnFinished(bool ok);
  void OnCallDone(bool ok);
  // Whether the call may be made, by the limits on connections and by who calls; otherwise it is
  // finished.
  bool IsWithinLimits();
  bool IsAllowed();
  // Notifies the reactor if its request has been waited for since before `latest`, once.
  void EndIfLate(int64_t latest);
  // gRPC may report a cancellation before the reactor is bound. Called with kBound and with
  // kCancelled; the first call after which both are known runs the reactor's OnCancel.
  static constexpr uint8_t kBound = 1;
  static constexpr uint8_t kCancelled = 2;
  void OnBoundOrCancelled(uint8_t what);
  // Counts an event that is pending.
  void* Hold(Event& event);
  // Uncounts it; deletes the call if no event is pending.
  void Release();

  Acceptor& acceptor_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::Alarm alarm_;
  std::shared_ptr<Reactor> reactor_;
  CancellationToken cancellation_;
  std::optional<CallMemory> memory_;
  // Null until the call is accepted, or if its peer is none of the server's connections.
  std::shared_ptr<Connection> connection_;
  // The other calls of the acceptor, which guards them.
  Call* previous_ = nullptr;
  Call* next_ = nullptr;
  // Since when the request is being read, in nanoseconds; 0 if it is not.
  std::atomic<int64_t> request_since_{0};
  // Whether the connections count this call, and whether the client cancelled it.
  bool counted_ = false;
  bool cancelled_ = false;
  // Null if nothing about the call is checked or recorded.
  std::unique_ptr<CallAccess> access_;
  // The caller that another server states when it passes a call on; null if it states none.
  std::unique_ptr<Caller> passed_on_;
  // Null if the method takes no alias.
  std::unique_ptr<CallAliases> aliases_;
  // What the read that was started fills. Used by the reading thread alone.
  grpc::ByteBuffer* incoming_ = nullptr;
  // What HandOver was given.
  struct Returned {
    grpc::ByteBuffer message;
    grpc::Alarm now;
  };
  std::function<void(std::shared_ptr<Reactor>)> bind_to_;
  std::unique_ptr<Returned> returned_;
  // Read when the call is accepted: gRPC forgets it when the client cancels.
  std::string peer_;
  CallTiming timing_;
  // Whether a write was started. Used by the writing thread alone.
  bool has_written_ = false;
  std::atomic<uint8_t> bound_or_cancelled_{0};
  std::atomic<int> pending_events_{0};
  CallEvent<&Call::OnAccepted> accepted_{*this};
  CallEvent<&Call::OnReadDone> read_done_{*this};
  CallEvent<&Call::OnReturned> message_returned_{*this};
  CallEvent<&Call::OnWriteDone> write_done_{*this};
  CallEvent<&Call::OnAlarm> alarm_expired_{*this};
  CallEvent<&Call::OnFlush> flush_due_{*this};
  CallEvent<&Call::OnFinished> finished_{*this};
  CallEvent<&Call::OnCallDone> call_done_{*this};
};

// The trace that the client states in its metadata; empty without a valid one. Parsed anew each
// time, so that calls that do not ask for it pay nothing.
TraceContext TraceOf(const grpc::ServerContext& context);
// The same as it is passed on: a traceparent of version 00, or empty.
std::string TraceparentOf(const grpc::ServerContext& context);

// The name in the access file of the principal that Call::caller() has; empty if it has none.
std::string PrincipalOf(const Call& call);

// The metadata in which a server of a fleet tells another whose call it forwards.
inline constexpr char kPrincipal[] = "perceptrond-principal-bin";

// Writes the messages of a server stream, one at a time, and then its status.
//
// For reactors whose newest message makes an unsent older one obsolete, such as progress and
// reports. Not thread-safe: guard it with the reactor's lock. The call must exist until Finish.
class StreamWriter {
 public:
  explicit StreamWriter(Call& call) : call_(call) {}

  // Sends the message, after the write in progress if there is one; replaces a message that waits.
  // Does nothing after Finish.
  template <typename Message>
  void Write(const Message& message) {
    if (end_.has_value()) return;
    grpc::ByteBuffer bytes;
    if (absl::Status status = SerializeMessage(message, bytes); !status.ok()) return Finish(status);
    next_ = bytes;
    Advance();
    CountMemory();
  }

  // Ends the stream, after the write in progress and, if the status is OK, after the message that
  // waits. The first status counts.
  void Finish(const absl::Status& status) {
    if (end_.has_value()) return;
    if (!status.ok()) next_.reset();
    end_ = ToGrpc(status);
    Advance();
  }

  // To be called from the reactor's OnWriteDone.
  void OnWriteDone(bool ok) {
    writing_ = false;
    current_.Clear();
    if (!ok) Finish(CancelledError());
    Advance();
    CountMemory();
  }

  bool writing() const { return writing_; }
  // Whether Finish was called.
  bool finished() const { return end_.has_value(); }

 private:
  void Advance() {
    if (writing_ || finish_started_) return;
    if (next_.has_value()) {
      current_.Swap(&*next_);
      next_.reset();
      writing_ = true;
      call_.StartWrite(current_);
    } else if (end_.has_value()) {
      finish_started_ = true;
      call_.Finish(*end_);
    }
  }

  void CountMemory() {
    // The call may be gone.
    if (finish_started_) return;
    call_.CountAnswers(current_.Length() + (next_.has_value() ? next_->Length() : 0));
  }

  Call& call_;
  // The message being written.
  grpc::ByteBuffer current_;
  std::optional<grpc::ByteBuffer> next_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finish_started_ = false;
};

}  // namespace perceptrond
