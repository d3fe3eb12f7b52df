#include "server/rpc/call.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/access/admission.h"
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
  if (Admit()) acceptor_.Find(path())(*this);
  OnBoundOrCancelled(kBound);
}

bool Call::Admit() {
  if (acceptor_.admission() == nullptr) return true;
  access_ = acceptor_.admission()->Admit(*this);
  if (access_ == nullptr || access_->denied().ok()) return true;
  Bind(std::make_shared<Reactor>());
  Finish(grpc::Status());
  return false;
}

// A denied message is not handled: for the reactor the client has sent its last one, and the call
// ends with another status than the reactor's.
void Call::OnReadDone(bool ok) {
  if (ok && access_ != nullptr && !access_->OnMessage(*incoming_).ok()) {
    incoming_->Clear();
    ok = false;
  }
  reactor_->OnReadDone(ok);
}

void Call::OnCallDone(bool /*ok*/) {
  if (context_.IsCancelled()) OnBoundOrCancelled(kCancelled);
}

void Call::OnBoundOrCancelled(uint8_t what) {
  constexpr uint8_t kBoth = kBound | kCancelled;
  const uint8_t before = bound_or_cancelled_.fetch_or(what, std::memory_order_acq_rel);
  if (before != kBoth && (before | what) == kBoth) reactor_->OnCancel();
}

void Call::StartRead(grpc::ByteBuffer* message) {
  incoming_ = message;
  stream_.Read(message, Hold(read_done_));
}

void Call::StartWrite(const grpc::ByteBuffer& message, bool more) {
  grpc::WriteOptions options;
  // The first write sends the initial metadata, and gRPC completes it only when that is sent: if it
  // were held back, it would never complete and nothing would follow.
  if (more && has_written_) options.set_buffer_hint();
  has_written_ = true;
  stream_.Write(message, options, Hold(write_done_));
}

void Call::StartAlarm(absl::Time when) {
  alarm_.Set(acceptor_.queue(), absl::ToChronoTime(when), Hold(alarm_expired_));
}

void Call::CancelAlarm() { alarm_.Cancel(); }

void Call::Finish(const grpc::Status& status) {
  if (access_ == nullptr) return stream_.Finish(status, static_cast<Event*>(&finished_));
  grpc::Status end = status;
  access_->OnFinish(end);
  stream_.Finish(end, static_cast<Event*>(&finished_));
}

void Call::FinishWith(const grpc::ByteBuffer& message) {
  if (access_ != nullptr) {
    grpc::Status end;
    access_->OnFinish(end);
    if (!end.ok()) return stream_.Finish(end, static_cast<Event*>(&finished_));
  }
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
