// One RPC of any kind, as raw bytes: what a method's code does with it, and what it hears of it.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/rpc/event.h"

namespace perceptrond {

class Acceptor;

// What hears of a call's events. Thread contract: a read's end, a write's end, an alarm and the
// cancellation may each be told while another is; those of one kind come one by one. Must not wait:
// whoever tells it serves other calls too (server/rpc/workers.h).
class Reactor {
 public:
  virtual ~Reactor() = default;
  // The read that was started is done; false: there is nothing more to read.
  virtual void OnReadDone(bool /*ok*/) {}
  // The write that was started was handed over; false: nothing can be written any more.
  virtual void OnWriteDone(bool /*ok*/) {}
  // The time that was waited for has come; false: the wait was called off.
  virtual void OnAlarm(bool /*ok*/) {}
  // Nobody waits for the call any more. It must be finished nevertheless. May come after that, too.
  virtual void OnCancel() {}
  // The last that is told. The call is gone after it.
  virtual void OnDone() {}
};

// Thread contract: any thread may start anything, but at most one read, one write and one alarm at
// a time, and nothing after Finish or FinishWith. Nothing is told from within these methods.
// Exists until the reactor's OnDone has returned, and so at least until it is finished.
class Call {
 public:
  // What answers a call: it gives it a reactor, starts something, and does not wait.
  using Method = std::function<void(Call&)>;

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Once, before anything is started. The call holds it until after OnDone.
  void Bind(std::shared_ptr<Reactor> reactor) { reactor_ = std::move(reactor); }
  // Reads the next message into `message`, which must exist until OnReadDone.
  void StartRead(grpc::ByteBuffer* message);
  // `more`: another write or the end follows soon, and may go out together with this one.
  void StartWrite(const grpc::ByteBuffer& message, bool more = false);
  void StartAlarm(absl::Time when);
  // Does nothing if it has rung.
  void CancelAlarm();
  // To be called exactly once, or FinishWith, when no write is under way.
  void Finish(const grpc::Status& status);
  // A last message, and OK.
  void FinishWith(const grpc::ByteBuffer& message);

  // As on the wire: "/perceptron.v1.ModelService/GetModel".
  const std::string& path() const { return context_.method(); }

 private:
  friend class Acceptor;

  // An event that is told to one of the call's methods.
  template <void (Call::*Told)(bool)>
  class Tag final : public Event {
   public:
    explicit Tag(Call& call) : call_(call) {}
    void Happened(bool ok) override {
      (call_.*Told)(ok);
      call_.Release();
    }

   private:
    Call& call_;
  };

  // Waits for the next call that the acceptor has no other for. Deletes itself.
  explicit Call(Acceptor& acceptor);
  ~Call();

  void Accepted(bool ok);
  void ReadDone(bool ok) { reactor_->OnReadDone(ok); }
  void WriteDone(bool ok) { reactor_->OnWriteDone(ok); }
  void AlarmRung(bool ok) { reactor_->OnAlarm(ok); }
  void Finished(bool /*ok*/) {}
  void Over(bool ok);
  // Two things must have happened before the reactor hears of the second: it is bound, and the call
  // was cancelled. Each may come first.
  void OneOfTwo();
  // The event will be told of.
  void* Hold(Event& event);
  void Release();

  Acceptor& acceptor_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::Alarm alarm_;
  std::shared_ptr<Reactor> reactor_;
  // Something was written. Of whoever writes.
  bool begun_ = false;
  std::atomic<bool> one_of_two_{false};
  // Events to come.
  std::atomic<int> held_{0};
  Tag<&Call::Accepted> accepted_{*this};
  Tag<&Call::ReadDone> read_done_{*this};
  Tag<&Call::WriteDone> write_done_{*this};
  Tag<&Call::AlarmRung> alarm_rung_{*this};
  Tag<&Call::Finished> finished_{*this};
  Tag<&Call::Over> over_{*this};
};

}  // namespace perceptrond
