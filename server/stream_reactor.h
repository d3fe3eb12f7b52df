// Carries one bidirectional stream between gRPC's callbacks and a session: reads while the session
// has room, writes what is ready, and ends the stream once everything taken has been answered.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "core/sync/mutex.h"
#include "server/drain.h"
#include "server/message.h"
#include "server/status.h"

namespace perceptrond {

// Deletes itself when gRPC is done with it; callbacks under way keep it alive. Session as
// server/learn_session.h.
template <typename Session>
class StreamReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Starts reading.
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(
      std::shared_ptr<Session> session, Drain& drain, size_t max_message_bytes) {
    std::shared_ptr<StreamReactor> reactor(
        new StreamReactor(std::move(session), drain, max_message_bytes));
    reactor->self_ = reactor;
    const std::weak_ptr<StreamReactor> weak = reactor;
    const auto pump = [weak] {
      if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->Advance(std::nullopt);
    };
    reactor->session_->OnReady(pump);
    drain.Add(
        [weak] {
          if (const std::shared_ptr<StreamReactor> alive = weak.lock()) {
            alive->Advance(DrainingError());
          }
        },
        reactor->drain_id_);
    reactor->Advance(std::nullopt);
    return reactor.get();
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      // The stream may have ended meanwhile: what came after that is not taken.
      if (!ok || end_.has_value()) {
        reading_ = false;
        EndWith(absl::OkStatus());
        Pump();
        return;
      }
      learning_ = true;
    }
    absl::Status status = AcceptMessage();
    MutexLock lock(&mutex_);
    reading_ = learning_ = false;
    if (!status.ok()) EndWith(std::move(status));
    Pump();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) Break();
    Pump();
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    Break();
    Pump();
  }

  void OnDone() override {
    drain_.Remove(drain_id_);
    const std::shared_ptr<StreamReactor> last = std::move(self_);
  }

 private:
  StreamReactor(std::shared_ptr<Session> session, Drain& drain, size_t max_message_bytes)
      : session_(std::move(session)), drain_(drain), max_message_bytes_(max_message_bytes) {}

  absl::Status AcceptMessage() {
    const size_t bytes = incoming_.Length();
    absl::Status status = ParseMessage(incoming_, max_message_bytes_, request_);
    return status.ok() ? session_->Accept(request_, bytes) : status;
  }

  void Advance(std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (end.has_value()) EndWith(*std::move(end));
    Pump();
  }

  // Nobody is at the other end any more.
  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!broken_.has_value()) broken_ = absl::CancelledError("the stream broke");
  }

  // The first reason stands; but a stream that was half-closed ends well only if all it sent is
  // answered.
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_.has_value() || end_->ok()) end_ = std::move(status);
  }

  // Starts whatever can be started. gRPC runs no callback from within the calls made here.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (absl::Status failure = session_->failure(); !failure.ok()) EndWith(std::move(failure));
    if (!broken_.has_value() && !writing_ && session_->Take(response_)) Answer();
    if (!broken_.has_value() && !end_.has_value() && !reading_ && !session_->Full()) {
      reading_ = true;
      StartRead(&incoming_);
    }
    // A message being learned holds up the end; a read that merely waits for the sender does not.
    const bool answered = end_.has_value() && session_->Idle();
    if (!writing_ && !learning_ && (broken_.has_value() || answered)) {
      finished_ = true;
      Finish(ToGrpc(broken_.has_value() ? *broken_ : *end_));
    }
  }

  // An answer that cannot be sent is the end: those behind it would be taken for it.
  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (absl::Status status = SerializeMessage(response_, outgoing_); !status.ok()) {
      broken_ = std::move(status);
      return;
    }
    writing_ = true;
    StartWrite(&outgoing_);
  }

  const std::shared_ptr<Session> session_;
  Drain& drain_;
  const size_t max_message_bytes_;
  uint64_t drain_id_ = 0;
  // gRPC's hold on the reactor.
  std::shared_ptr<StreamReactor> self_;

  // Of the read under way, and of the thread that has its message.
  grpc::ByteBuffer incoming_;
  typename Session::Request request_;

  Mutex mutex_;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  typename Session::Response response_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A message was read and is being learned.
  bool learning_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Why nothing more can be sent; set: what is left unanswered stays so.
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the stream is to end; set: read no more.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
