#include "server/rpc/call.h"

#include <iterator>
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
  peer_ = context_.peer();
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
  stream_.Write(message, options, Hold(write_done_));
}

void Call::StartAlarm(absl::Time when) {
  alarm_.Set(acceptor_.queue(), absl::ToChronoTime(when), Hold(alarm_expired_));
}

void Call::CancelAlarm() { alarm_.Cancel(); }

TraceContext Call::trace() const {
  const auto [first, last] = context_.client_metadata().equal_range(kTraceparent);
  // More than one is invalid, since each claims to be the caller.
  if (first == last || std::next(first) != last) return {};
  const absl::string_view value(first->second.data(), first->second.size());
  return ParseTraceparent(value).value_or(TraceContext());
}

SlowCallLog& Call::slow_calls() { return acceptor_.slow_calls(); }

void Call::OnFinished(bool ok) {
  if (!timing_.started()) return;
  const SteadyClock::time_point now = EventTime();
  const SteadyClock::duration total = now - timing_.start();
  if (!slow_calls().IsSlow(total)) return;
  // An answer that could not be sent is one whose client is gone.
  slow_calls().Write({.method = path(),
                      .model = timing_.model,
                      .peer = peer(),
                      .trace = trace(),
                      .bytes = timing_.bytes,
                      .rows = timing_.rows,
                      .code = ok ? timing_.code() : int{grpc::StatusCode::CANCELLED},
                      .total = ToMilliseconds(total),
                      .parts = timing_.PartsUntil(now)});
}

void Call::Finish(const grpc::Status& status) {
  timing_.Stop(status.error_code());
  stream_.Finish(status, static_cast<Event*>(&finished_));
}

void Call::FinishWith(const grpc::ByteBuffer& message) {
  timing_.Stop(grpc::StatusCode::OK);
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
