// Carries one bidirectional stream between its call and a session: reads while the session has
// room, has messages learned in turn while the next ones are being received, writes what is ready,
// and ends the stream once everything taken has been answered.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "core/sync/mutex.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/drain.h"
#include "server/rpc/message.h"
#include "server/rpc/quick.h"
#include "server/rpc/status.h"
#include "server/rpc/workers.h"

namespace perceptrond {

// The call keeps it; listeners and workers under way keep it longer. Session as
// server/sessions/learn_session.h.
template <typename Session>
class StreamReactor final : public Reactor,
                            public std::enable_shared_from_this<StreamReactor<Session>> {
 public:
  // Starts reading.
  static void Start(Call& call, const Backend& backend, std::shared_ptr<Session> session) {
    std::shared_ptr<StreamReactor> reactor(new StreamReactor(call, backend, std::move(session)));
    call.Bind(reactor);
    const std::weak_ptr<StreamReactor> weak = reactor;
    const auto pump = [weak] {
      if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->Advance(std::nullopt);
    };
    reactor->session_->OnReady(pump);
    backend.drain.Add(
        [weak] {
          if (const std::shared_ptr<StreamReactor> alive = weak.lock()) {
            alive->Advance(DrainingError());
          }
        },
        reactor->drain_id_);
    reactor->Advance(std::nullopt);
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      // The stream may have ended meanwhile: what came after that is not taken.
      if (!ok || end_.has_value()) {
        EndWith(absl::OkStatus());
        return Pump();
      }
      inbox_bytes_ += incoming_.Length();
      inbox_.emplace_back().Swap(&incoming_);
      if (working_ || inbox_bytes_ > kSmallMessage || session_->Full() || !session_->Quick())
        return Pump();
      working_ = true;
    }
    Work();
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

  void OnDone() override { backend_.drain.Remove(drain_id_); }

 private:
  // So much is received while a message is being learned; what comes waits with gRPC.
  static constexpr size_t kInboxMessages = 64;
  static constexpr size_t kInboxBytes = 4 << 20;
  static constexpr uint32_t kWritesTogether = 16;
  // A message that is no larger is answered within some 100 us.
  static constexpr size_t kSoonAnswered = 128 << 10;
  // Of one stream, before a worker looks after others.
  static constexpr int kMessagesInARow = 32;

  StreamReactor(Call& call, const Backend& backend, std::shared_ptr<Session> session)
      : call_(call), backend_(backend), session_(std::move(session)) {}

  void Advance(std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (end.has_value()) EndWith(*std::move(end));
    Pump();
  }

  void HaveWorked() {
    backend_.workers.Do([self = this->shared_from_this()] { self->Work(); });
  }

  // Learns what is in the inbox, while its answers have room. One thread at a time: working_ is
  // set.
  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (int i = 1; i % kMessagesInARow != 0 || !backend_.workers.Wanted(); ++i) {
      grpc::ByteBuffer message;
      {
        MutexLock lock(&mutex_);
        if (inbox_.empty() || session_->Full()) {
          working_ = false;
          return Pump();
        }
        message.Swap(&inbox_.front());
        inbox_.pop_front();
        inbox_bytes_ -= message.Length();
      }
      absl::Status status = Learn(message);
      MutexLock lock(&mutex_);
      if (!status.ok()) EndWith(std::move(status));
      Pump();
    }
    HaveWorked();
  }

  absl::Status Learn(grpc::ByteBuffer& message) {
    const size_t bytes = message.Length();
    absl::Status status = ParseMessage(message, backend_.max_message_bytes, request_);
    return status.ok() ? session_->Accept(request_, bytes) : status;
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

  // Not again before half of it is empty: each restart wakes whoever polls.
  bool InboxFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t share = inbox_was_full_ ? 2 : 1;
    inbox_was_full_ =
        inbox_.size() >= kInboxMessages / share || inbox_bytes_ >= kInboxBytes / share;
    return inbox_was_full_;
  }

  // Starts whatever can be started. Nothing is told of from within the calls made here.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (absl::Status failure = session_->failure(); !failure.ok()) EndWith(std::move(failure));
    if (broken_.has_value() || (end_.has_value() && !end_->ok())) DropInbox();
    if (!broken_.has_value() && !writing_ && session_->Take(response_)) Answer();
    if (!broken_.has_value() && !end_.has_value() && !reading_ && !InboxFull() &&
        !session_->Full(inbox_.size(), inbox_bytes_)) {
      reading_ = true;
      call_.StartRead(&incoming_);
    }
    if (!working_ && !inbox_.empty() && !session_->Full()) {
      working_ = true;
      HaveWorked();
    }
    // A message being learned holds up the end; a read that merely waits for the sender does not.
    const bool answered = end_.has_value() && inbox_.empty() && session_->Idle();
    if (!writing_ && !working_ && (broken_.has_value() || answered)) {
      finished_ = true;
      call_.Finish(ToGrpc(broken_.has_value() ? *broken_ : *end_));
    }
  }

  // What came before a half-close is learned; before any other end, it was not taken.
  void DropInbox() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    inbox_.clear();
    inbox_bytes_ = 0;
  }

  // An answer that cannot be sent is the end: those behind it would be taken for it.
  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (absl::Status status = SerializeMessage(response_, outgoing_); !status.ok()) {
      broken_ = std::move(status);
      return;
    }
    writing_ = true;
    call_.StartWrite(outgoing_, MoreFollows());
  }

  // Whether another answer will be written in a moment: of a session that answers each message as
  // it takes it. Now and then none is waited for.
  bool MoreFollows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!Session::kAnswersAtOnce || ++writes_ % kWritesTogether == 0) return false;
    if (!session_->Idle()) return true;
    return working_ && !inbox_.empty() && inbox_.front().Length() <= kSoonAnswered &&
           !backend_.workers.Wanted();
  }

  Call& call_;
  const Backend backend_;
  const std::shared_ptr<Session> session_;
  uint64_t drain_id_ = 0;

  // Of the read under way.
  grpc::ByteBuffer incoming_;
  // Of whoever works.
  typename Session::Request request_;

  Mutex mutex_;
  // Read and not yet being learned.
  std::deque<grpc::ByteBuffer> inbox_ ABSL_GUARDED_BY(mutex_);
  bool inbox_was_full_ ABSL_GUARDED_BY(mutex_) = false;
  size_t inbox_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  typename Session::Response response_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // The inbox is being learned, or a worker has been told to.
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why nothing more can be sent; set: what is left unanswered stays so.
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the stream is to end; set: read no more.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
