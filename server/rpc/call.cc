#include "server/rpc/call.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/acceptor.h"

namespace perceptrond {

Call::Call(Acceptor& acceptor) : acceptor_(acceptor) {
  // May be told before the call was accepted: the client can be gone by then.
  context_.AsyncNotifyWhenDone(Hold(over_));
  acceptor_.Request(context_, stream_, Hold(accepted_));
}

Call::~Call() { acceptor_.Gone(); }

void Call::Accepted(bool ok) {
  // The server shuts down: what was never accepted has no end either.
  if (!ok) return Release();
  acceptor_.AwaitCall();
  // Whatever happens, the reactor finishes the call.
  Hold(finished_);
  acceptor_.Find(path())(*this);
  OneOfTwo();
}

void Call::Over(bool /*ok*/) {
  if (context_.IsCancelled()) OneOfTwo();
}

void Call::OneOfTwo() {
  if (one_of_two_.exchange(true, std::memory_order_acq_rel)) reactor_->OnCancel();
}

void Call::StartRead(grpc::ByteBuffer* message) { stream_.Read(message, Hold(read_done_)); }

void Call::StartWrite(const grpc::ByteBuffer& message, bool more) {
  grpc::WriteOptions options;
  // The first write brings the initial metadata, which gRPC does not call written before it is
  // sent: held back, it would never be done, and nothing would follow.
  if (more && begun_) options.set_buffer_hint();
  begun_ = true;
  stream_.Write(message, options, Hold(write_done_));
}

void Call::StartAlarm(absl::Time when) {
  alarm_.Set(acceptor_.queue(), absl::ToChronoTime(when), Hold(alarm_rung_));
}

void Call::CancelAlarm() { alarm_.Cancel(); }

void Call::Finish(const grpc::Status& status) {
  stream_.Finish(status, static_cast<Event*>(&finished_));
}

void Call::FinishWith(const grpc::ByteBuffer& message) {
  stream_.WriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK,
                         static_cast<Event*>(&finished_));
}

void* Call::Hold(Event& event) {
  held_.fetch_add(1, std::memory_order_relaxed);
  return &event;
}

void Call::Release() {
  if (held_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (reactor_ != nullptr) reactor_->OnDone();
  delete this;
}

}  // namespace perceptrond
