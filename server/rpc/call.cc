#include "server/rpc/call.h"

#include <grpc/grpc.h>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/acceptor.h"

namespace perceptrond {

Call::Call(Acceptor& acceptor) : acceptor_(acceptor) {
  // May complete before the call is accepted: the client may have cancelled by then.
  context_.AsyncNotifyWhenDone(Hold(call_done_));
  acceptor_.Request(context_, stream_, Hold(accepted_));
}

Call::~Call() { acceptor_.OnCallDestroyed(); }

void Call::OnAccepted(bool ok) {
  // The server shuts down. gRPC reports no end for a call that was never accepted.
  if (!ok) return Release();
  acceptor_.AwaitCall();
  // The reactor always finishes the call.
  Hold(finished_);
  acceptor_.Find(path())(*this);
  OnBoundOrCancelled();
}

void Call::OnCallDone(bool /*ok*/) {
  if (context_.IsCancelled()) OnBoundOrCancelled();
}

void Call::OnBoundOrCancelled() {
  if (bound_or_cancelled_.exchange(true, std::memory_order_acq_rel)) reactor_->OnCancel();
}

void Call::StartRead(grpc::ByteBuffer* message) { stream_.Read(message, Hold(read_done_)); }

void Call::StartWrite(const grpc::ByteBuffer& message, bool more) {
  grpc::WriteOptions options;
  // The first write sends the initial metadata, and gRPC completes it only when that is sent: if it
  // were held back, it would never complete and nothing would follow.
  if (more && has_written_) options.set_buffer_hint();
  has_written_ = true;
  if (memory_.has_value()) memory_->OnWrite(message.Length());
  stream_.Write(message, options, Hold(write_done_));
}

void Call::StartAlarm(absl::Time when) {
  alarm_.Set(acceptor_.queue(), absl::ToChronoTime(when), Hold(alarm_expired_));
}

void Call::CancelAlarm() { alarm_.Cancel(); }

void Call::Finish(const grpc::Status& status) {
  stream_.Finish(status, static_cast<Event*>(&finished_));
}

void Call::Abort(grpc::StatusCode code, const std::string& message) {
  // TryCancel can only say CANCELLED.
  grpc_call_cancel_with_status(context_.c_call(), static_cast<grpc_status_code>(code),
                               message.c_str(), nullptr);
}

void Call::FinishWith(const grpc::ByteBuffer& message) {
  if (memory_.has_value()) memory_->OnWrite(message.Length());
  stream_.WriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK,
                         static_cast<Event*>(&finished_));
}

void* Call::Hold(Event& event) {
  pending_events_.fetch_add(1, std::memory_order_relaxed);
  return &event;
}

void Call::Release() {
  if (pending_events_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (reactor_ != nullptr) reactor_->OnDone();
  delete this;
}

}  // namespace perceptrond
