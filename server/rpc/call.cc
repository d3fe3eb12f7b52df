#include "server/rpc/call.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/access/admission.h"
#include "server/rpc/acceptor.h"

namespace perceptrond {

Call::Call(Acceptor& acceptor) : acceptor_(acceptor), cancellation_(&acceptor.cancellation()) {
  // May complete before the call is accepted: the client may have cancelled by then.
  context_.AsyncNotifyWhenDone(Hold(call_done_));
  acceptor_.Request(context_, stream_, Hold(accepted_));
}

Call::~Call() {
  if (counted_) acceptor_.connections_->EndCall(connection_.get(), path(), cancelled_);
  acceptor_.OnCallDestroyed(*this);
}

void Call::OnAccepted(bool ok) {
  // The server shuts down. gRPC reports no end for a call that was never accepted.
  if (!ok) return Release();
  acceptor_.AwaitCall();
  peer_ = context_.peer();
  if (const auto deadline = context_.deadline(); deadline != deadline.max()) {
    constexpr std::chrono::hours kMost(24 * 365);
    cancellation_.set_deadline(
        CancellationToken::Clock::now() +
        std::min<std::chrono::nanoseconds>(kMost, deadline - std::chrono::system_clock::now()));
  }
  // The reactor always finishes the call.
  Hold(finished_);
  if (IsWithinLimits() && IsAllowed()) acceptor_.Find(path())(*this);
  OnBoundOrCancelled(kBound);
}

bool Call::IsWithinLimits() {
  if (acceptor_.connections_ == nullptr) return true;
  counted_ = true;
  const absl::Status admitted = acceptor_.connections_->BeginCall(peer_, path(), connection_);
  if (admitted.ok()) return true;
  Bind(std::make_shared<Reactor>());
  Finish(ToGrpc(admitted));
  return false;
}

bool Call::IsAllowed() {
  if (acceptor_.admission() == nullptr) {
    // Only a port for other servers has no admission.
    const auto principal = context_.client_metadata().find(kPrincipal);
    if (principal != context_.client_metadata().end()) {
      passed_on_ = std::make_unique<PassedOnCaller>(
          acceptor_.access(), std::string(principal->second.data(), principal->second.size()));
    }
    return true;
  }
  if (std::optional<CallAliases> aliases = acceptor_.admission()->AliasesFor(path()))
    aliases_ = std::make_unique<CallAliases>(*std::move(aliases));
  access_ = acceptor_.admission()->Admit(*this);
  if (access_ == nullptr || access_->denied().ok()) return true;
  Bind(std::make_shared<Reactor>());
  Finish(grpc::Status());
  return false;
}

// A denied message is not handled: for the reactor the client has sent its last one, and the call
// ends with another status than the reactor's.
void Call::OnReadDone(bool ok) {
  request_since_.store(0, std::memory_order_relaxed);
  if (ok && connection_ != nullptr) connection_->OnMessage(incoming_->Length());
  if (ok && aliases_ != nullptr) aliases_->OnMessage(*incoming_);
  if (ok && access_ != nullptr &&
      !access_->OnMessage(*incoming_, aliases_ == nullptr ? "" : aliases_->alias()).ok()) {
    incoming_->Clear();
    ok = false;
  }
  reactor_->OnReadDone(ok);
}

void Call::OnWriteDone(bool ok) {
  if (ok && connection_ != nullptr) connection_->OnProgress();
  if (memory_.has_value()) memory_->OnWritten();
  reactor_->OnWriteDone(ok);
}

void Call::OnCallDone(bool /*ok*/) {
  cancelled_ = context_.IsCancelled();
  if (!cancelled_) return;
  cancellation_.Cancel();
  OnBoundOrCancelled(kCancelled);
}

void Call::OnBoundOrCancelled(uint8_t what) {
  constexpr uint8_t kBoth = kBound | kCancelled;
  const uint8_t before = bound_or_cancelled_.fetch_or(what, std::memory_order_acq_rel);
  if (before != kBoth && (before | what) == kBoth) reactor_->OnCancel();
}

void Call::HandOver(std::function<void(std::shared_ptr<Reactor>)> bind_to,
                    grpc::ByteBuffer& message) {
  bind_to_ = std::move(bind_to);
  returned_ = std::make_unique<Returned>();
  returned_->message.Swap(&message);
}

void Call::OnReturned(bool /*ok*/) {
  request_since_.store(0, std::memory_order_relaxed);
  reactor_->OnReadDone(true);
}

void Call::StartRead(grpc::ByteBuffer* message) {
  incoming_ = message;
  if (returned_ != nullptr && returned_->message.Valid()) {
    message->Swap(&returned_->message);
    returned_->message.Clear();
    // No callback runs from within this method.
    returned_->now.Set(acceptor_.queue(), gpr_now(GPR_CLOCK_MONOTONIC), Hold(message_returned_));
    return;
  }
  stream_.Read(message, Hold(read_done_));
}

void Call::StartReadRequest(grpc::ByteBuffer* message) {
  request_since_.store(absl::GetCurrentTimeNanos(), std::memory_order_release);
  StartRead(message);
}

void Call::EndIfLate(int64_t latest) {
  const int64_t since = request_since_.load(std::memory_order_acquire);
  if (since == 0 || since > latest) return;
  request_since_.store(0, std::memory_order_relaxed);
  reactor_->OnRequestTimeout();
}

void Call::StartWrite(const grpc::ByteBuffer& message, bool more) {
  if (!message.Valid()) {
    has_written_ = true;
    return stream_.SendInitialMetadata(Hold(write_done_));
  }
  grpc::WriteOptions options;
  // The first write sends the initial metadata, and gRPC completes it only when that is sent: if it
  // were held back, it would never complete and nothing would follow.
  if (more && has_written_) options.set_buffer_hint();
  has_written_ = true;
  if (memory_.has_value()) memory_->OnWrite(message.Length());
  stream_.Write(message, options, Hold(write_done_));
}

bool Call::FlushLater() {
  if (events_to_flush == nullptr) return false;
  Hold(flush_due_);
  events_to_flush->push_back(&flush_due_);
  return true;
}

void Call::StartAlarm(absl::Time when) {
  alarm_.Set(acceptor_.queue(), absl::ToChronoTime(when), Hold(alarm_expired_));
}

void Call::CancelAlarm() { alarm_.Cancel(); }

namespace {

// Empty without exactly one: each claims to be the caller.
absl::string_view StatedTrace(const grpc::ServerContext& context) {
  const auto [first, last] = context.client_metadata().equal_range(kTraceparent);
  if (first == last || std::next(first) != last) return {};
  return {first->second.data(), first->second.size()};
}

}  // namespace

TraceContext TraceOf(const grpc::ServerContext& context) {
  return ParseTraceparent(StatedTrace(context)).value_or(TraceContext());
}

std::string TraceparentOf(const grpc::ServerContext& context) {
  const absl::string_view stated = StatedTrace(context);
  // What later versions append is theirs.
  return ParseTraceparent(stated).has_value()
             ? absl::StrCat("00", stated.substr(2, kTraceparentBytes - 2))
             : "";
}

const Caller* Call::caller() const {
  return access_ != nullptr ? static_cast<const Caller*>(access_.get()) : passed_on_.get();
}

std::string PrincipalOf(const Call& call) {
  return call.caller() == nullptr ? "" : call.caller()->principal();
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
                      .principal = PrincipalOf(*this),
                      .trace = TraceOf(context_),
                      .bytes = timing_.bytes,
                      .rows = timing_.rows,
                      .code = ok ? timing_.code() : int{grpc::StatusCode::CANCELLED},
                      .total = ToMilliseconds(total),
                      .parts = timing_.PartsUntil(now)});
}

void Call::Finish(const grpc::Status& status) {
  grpc::Status end = status;
  if (access_ != nullptr) access_->OnFinish(end);
  timing_.Stop(end.error_code());
  stream_.Finish(end, static_cast<Event*>(&finished_));
}

void Call::Abort(grpc::StatusCode code, const std::string& message) {
  // TryCancel can only say CANCELLED.
  grpc_call_cancel_with_status(context_.c_call(), static_cast<grpc_status_code>(code),
                               message.c_str(), nullptr);
}

void Call::FinishWith(const grpc::ByteBuffer& message) {
  grpc::Status end;
  if (access_ != nullptr) access_->OnFinish(end);
  timing_.Stop(end.error_code());
  if (!end.ok()) return stream_.Finish(end, static_cast<Event*>(&finished_));
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
