// Connects one bidirectional stream to a session: reads while the session has room, has the session
// handle messages in order while the next ones are received, writes responses that are ready, and
// ends the stream once every message that was handled has been answered. It writes without
// StreamWriter, which keeps only the newest message that waits: here each response is sent.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "core/sync/mutex.h"
#include "server/access/admission.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/sessions/message_timings.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

// Session is LearnSession or PredictSession, or has the same methods.
//
// Ownership: the call keeps the reactor, and so does every listener and worker that runs.
template <typename Session>
class StreamReactor final : public Reactor,
                            public std::enable_shared_from_this<StreamReactor<Session>> {
 public:
  // Binds a new reactor to the call and starts reading.
  static void Start(Call& call, const Backend& backend, std::shared_ptr<Session> session) {
    std::shared_ptr<StreamReactor> reactor(new StreamReactor(call, backend, std::move(session)));
    call.Bind(reactor);
    const std::weak_ptr<StreamReactor> weak = reactor;
    const auto on_ready = [weak] {
      if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->Advance(std::nullopt);
    };
    reactor->session_->OnReady(on_ready);
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
      // The stream may have ended meanwhile: a message that arrives later is dropped.
      if (!ok || end_.has_value()) {
        EndWith(absl::OkStatus());
        return Pump();
      }
      inbox_bytes_ += incoming_.Length();
      timings_.OnRead(incoming_.Length());
      inbox_.emplace_back().Swap(&incoming_);
      if (working_ || paused_ || inbox_bytes_ > kMaxInlineBytes || state_.Full() ||
          !session_->CanRunInline())
        return Pump();
      working_ = true;
    }
    HandleInbox();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    ok ? timings_.OnWritten() : Break();
    Pump();
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    Break();
    Pump();
  }

  // The time of a pause is over.
  void OnAlarm(bool /*ok*/) override {
    MutexLock lock(&mutex_);
    paused_ = false;
    PauseIfLimited();
    Pump();
  }

  void OnDone() override {
    {
      MutexLock lock(&mutex_);
      timings_.OnEnd(broken_.has_value() ? *broken_ : end_.value_or(absl::OkStatus()));
    }
    backend_.drain.Remove(drain_id_);
  }

 private:
  // How much is received while a message is handled; more waits with gRPC.
  static constexpr size_t kMaxInboxMessages = 64;
  static constexpr size_t kMaxInboxBytes = 4 << 20;
  // At most this many writes are sent together.
  static constexpr uint32_t kMaxWritesTogether = 16;
  // A message of at most this size is handled within about 100 us.
  static constexpr size_t kMaxSoonAnsweredBytes = 128 << 10;
  // The number of messages of one stream that a worker handles before it serves other streams.
  static constexpr int kMessagesPerTurn = 32;
  static constexpr absl::Duration kMaxPause = absl::Seconds(1);

  StreamReactor(Call& call, const Backend& backend, std::shared_ptr<Session> session)
      : call_(call), backend_(backend), session_(std::move(session)), timings_(call) {}

  void Advance(std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (end.has_value()) EndWith(*std::move(end));
    Pump();
  }

  void ScheduleWork() {
    backend_.workers.Schedule([self = this->shared_from_this()] { self->HandleInbox(); });
  }

  // Handles the messages in the inbox while the session has room for their answers. Runs on one
  // thread at a time, the one that set working_.
  void HandleInbox() ABSL_LOCKS_EXCLUDED(mutex_) {
    SteadyClock::time_point begin = EventTime();
    for (int i = 1; i % kMessagesPerTurn != 0 || !backend_.workers.HasBacklog(); ++i) {
      grpc::ByteBuffer message;
      bool more = false;
      {
        MutexLock lock(&mutex_);
        if (inbox_.empty() || state_.Full() || paused_) {
          working_ = false;
          return Pump();
        }
        message.Swap(&inbox_.front());
        inbox_.pop_front();
        inbox_bytes_ -= message.Length();
        more = !inbox_.empty();
      }
      MessageHandling handling(begin);
      absl::Status status = HandleMessage(message, more, handling);
      handling.OnDone();
      begin = handling.end();
      MutexLock lock(&mutex_);
      timings_.OnHandled(handling, request_, Session::kAnswersSynchronously && status.ok());
      if (!status.ok()) EndWith(std::move(status));
      PauseIfLimited();
      Pump();
    }
    ScheduleWork();
  }

  // `more`: others wait.
  absl::Status HandleMessage(grpc::ByteBuffer& message, bool more, MessageHandling& handling) {
    const size_t bytes = message.Length();
    const CountedUsage counted(call_.access() == nullptr ? nullptr : call_.access()->usage());
    absl::Status status = ParseMessage(message, backend_.max_message_bytes, request_);
    handling.OnParsed(bytes);
    return status.ok() ? session_->Accept(request_, bytes, more) : status;
  }

  // While the principal is above its rate of examples nothing is read or handled, so that gRPC's flow
  // control holds the sender back. The rate may be raised meanwhile.
  void PauseIfLimited() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (call_.access() == nullptr || paused_ || finished_ || broken_.has_value()) return;
    const absl::Duration wait = std::min(call_.access()->LimitWait(), kMaxPause);
    if (wait <= absl::ZeroDuration()) return;
    paused_ = true;
    call_.StartAlarm(absl::Now() + wait);
  }

  // The client is gone.
  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!broken_.has_value()) broken_ = CancelledError();
  }

  // Sets the status that the stream ends with. The first error counts. OK, after a half-close, is
  // replaced by an error that occurs before every message is answered.
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_.has_value() || end_->ok()) end_ = std::move(status);
  }

  // Once full, the inbox counts as full until it is half empty: each read that is started wakes a
  // polling thread.
  bool InboxFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t share = inbox_was_full_ ? 2 : 1;
    inbox_was_full_ =
        inbox_.size() >= kMaxInboxMessages / share || inbox_bytes_ >= kMaxInboxBytes / share;
    return inbox_was_full_;
  }

  // Starts every operation that can be started. No callback runs from within the calls made here.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    state_ = session_->Poll(broken_.has_value() || writing_ ? nullptr : &response_);
    state_.has_response ? timings_.OnReady(state_.ready_answers, response_)
                        : timings_.OnReady(state_.ready_answers);
    if (!state_.failure.ok()) EndWith(state_.failure);
    if (broken_.has_value() || (end_.has_value() && !end_->ok())) DropInbox();
    if (state_.has_response) WriteResponse();
    if (!broken_.has_value() && !end_.has_value() && !reading_ && !paused_ && !InboxFull() &&
        !state_.Full(inbox_.size(), inbox_bytes_)) {
      reading_ = true;
      call_.StartRead(&incoming_);
    }
    if (!working_ && !paused_ && !inbox_.empty() && !state_.Full()) {
      working_ = true;
      ScheduleWork();
    }
    // The end waits for a message that is being handled, and not for a read, which waits for the
    // client.
    const bool answered = end_.has_value() && inbox_.empty() && state_.idle;
    if (!writing_ && !working_ && (broken_.has_value() || answered)) {
      finished_ = true;
      if (paused_) call_.CancelAlarm();
      call_.Finish(ToGrpc(broken_.has_value() ? *broken_ : *end_));
    }
  }

  // Messages that arrived before a half-close are handled; before any other end they are dropped.
  void DropInbox() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    inbox_.clear();
    inbox_bytes_ = 0;
  }

  // A response that cannot be sent ends the stream: the client would take the next one for it.
  void WriteResponse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (absl::Status status = SerializeMessage(response_, outgoing_); !status.ok()) {
      broken_ = std::move(status);
      return;
    }
    writing_ = true;
    call_.StartWrite(outgoing_, MoreFollows());
  }

  // Whether another response will be written soon, so that the two may be sent together. Sessions
  // that answer when a commit is done cannot tell. False every kMaxWritesTogether writes, so that
  // no response is held back for long.
  bool MoreFollows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!Session::kAnswersSynchronously || ++writes_ % kMaxWritesTogether == 0) return false;
    if (!state_.idle) return true;
    return working_ && !inbox_.empty() && inbox_.front().Length() <= kMaxSoonAnsweredBytes &&
           !backend_.workers.HasBacklog();
  }

  Call& call_;
  const Backend backend_;
  const std::shared_ptr<Session> session_;
  uint64_t drain_id_ = 0;

  // The message being read.
  grpc::ByteBuffer incoming_;
  // The message being handled.
  typename Session::Request request_;

  Mutex mutex_;
  // Of the last Pump. Only the thread in HandleInbox makes the session fuller, and it pumps then.
  SessionState state_ ABSL_GUARDED_BY(mutex_);
  // Messages that were read and are not being handled yet.
  std::deque<grpc::ByteBuffer> inbox_ ABSL_GUARDED_BY(mutex_);
  bool inbox_was_full_ ABSL_GUARDED_BY(mutex_) = false;
  size_t inbox_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  typename Session::Response response_ ABSL_GUARDED_BY(mutex_);
  MessageTimings timings_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A thread is in HandleInbox, or a worker is scheduled to be.
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // An alarm is pending, until which nothing is read or handled.
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set if nothing more can be sent: unanswered messages stay unanswered.
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Set if the stream must end: nothing more is read.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

// The method of a service whose streams are sessions of this kind.
template <typename Session>
Call::Method OnStream(const Backend& backend) {
  return [backend](Call& call) {
    StreamReactor<Session>::Start(call, backend,
                                  std::make_shared<Session>(backend.store, backend.stream_limits));
  };
}

}  // namespace perceptrond
