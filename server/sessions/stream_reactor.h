// Connects one bidirectional stream to a session: reads while the session has room, has the session handle messages in
// order while the next ones are received, writes responses that are ready, and ends the stream once every message that
// was handled has been answered. It writes without StreamWriter, which keeps only the newest message that waits: here
// each response is sent.
//
// What it holds counts within the memory budget. While that is short, a stream reads and handles its next message only
// when all before are answered, which each answer brings nearer: no stream waits for another.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "core/sync/cancellation.h"
#include "core/sync/current_call.h"
#include "core/sync/mutex.h"
#include "server/access/admission.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/message.h"
#include "server/rpc/message_work.h"
#include "server/rpc/revision_wait.h"
#include "server/sessions/message_inbox.h"
#include "server/sessions/message_timings.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

// Session is LearnSession or PredictSession, or has the same methods and constants.
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
    call.UseMemory(backend.memory);
    const std::weak_ptr<StreamReactor> weak = reactor;
    const auto on_ready = [weak] {
      if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->Advance(std::nullopt);
    };
    reactor->session_->OnReady(on_ready);
    backend.drain.Add(
        [weak] {
          if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->OnDrain();
        },
        reactor->drain_id_);
    reactor->Advance(std::nullopt);
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      // A message that arrives after the stream's end, or after the call is finished, is dropped.
      if (!ok || end_.has_value() || broken_.has_value()) {
        EndWith(absl::OkStatus());
        return Pump();
      }
      const size_t bytes = incoming_.Length();
      if (absl::Status status = AcceptIncoming(); !status.ok()) {
        refused_ = std::move(status);
        return Pump();
      }
      timings_.OnRead(bytes);
      if (working_ || inbox_.bytes() > kMaxInlineBytes || MustWait() || !session_->CanRunInline())
        return Pump();
      working_ = true;
      if constexpr (!Session::kAnswersSynchronously) is_held_ = is_held_ || call_.FlushLater();
    }
    HandleInbox(WorkSize::kSmall);
  }

  void OnFlush() override {
    MutexLock lock(&mutex_);
    is_held_ = false;
    Pump();
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
  // How long an answer waits for those of messages that the thread in HandleInbox handles next.
  static constexpr SteadyClock::duration kMostHeld = std::chrono::milliseconds(1);
  // At most this many writes are sent together.
  static constexpr uint32_t kMaxWritesTogether = 16;
  // A message of at most this size is handled within about 100 us.
  static constexpr size_t kMaxSoonAnsweredBytes = 128 << 10;
  // Memory for messages that a stream keeps for the next ones.
  static constexpr size_t kMaxKeptBytes = 256 << 10;
  // The same as what one has become.
  static constexpr size_t kMaxKeptParsedBytes = 512 << 10;
  // The messages of one stream that a worker handles, and for how long, before it serves others.
  static constexpr int kMessagesPerTurn = 32;
  static constexpr SteadyClock::duration kTurnTime = std::chrono::milliseconds(1);
  static constexpr absl::Duration kMaxPause = absl::Seconds(1);
  // How long a message waits for its revision: a stream's deadline is for all of them.
  static constexpr absl::Duration kMaxRevisionWait = absl::Seconds(10);

  StreamReactor(Call& call, const Backend& backend, std::shared_ptr<Session> session)
      : call_(call), backend_(backend), session_(std::move(session)) {}

  void Advance(std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (end.has_value()) EndWith(*std::move(end));
    // What a commit made ready is several answers already.
    Pump(/*may_hold=*/false);
  }

  // Ends the stream, unless its session has to receive something before.
  void OnDrain() ABSL_LOCKS_EXCLUDED(mutex_) {
    if constexpr (requires { session_->GoesOnToDrain(); }) {
      if (session_->GoesOnToDrain()) return Advance(std::nullopt);
    }
    Advance(DrainingError());
  }

  void ScheduleWork(WorkSize size = WorkSize::kSmall) {
    backend_.workers.Schedule(size,
                              [self = this->shared_from_this(), size] { self->HandleInbox(size); });
  }

  // Moves the message that was read to the inbox, if there is memory for it. RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE,
  // MEMORY_EXHAUSTED): it is dropped, and the stream must end after the messages before it.
  absl::Status AcceptIncoming() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t bytes = incoming_.Length();
    absl::Status status = CheckMessageSize(incoming_, backend_.max_message_bytes);
    if (status.ok() && !call_.memory().TrySet(MemoryUse::kRequests, request_bytes() + bytes))
      status = MemoryExhausted("the message", bytes, backend_.memory.budget());
    if (!status.ok()) {
      incoming_.Clear();
      return status;
    }
    inbox_.Add(incoming_);
    return status;
  }

  size_t request_bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return inbox_.bytes() + handled_bytes_ + state_.name_table_bytes;
  }
  void CountMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    call_.memory().Set(MemoryUse::kRequests, request_bytes());
    call_.memory().Set(MemoryUse::kAnswers,
                       state_.answer_bytes + (writing_ ? outgoing_.Length() : 0));
  }

  // Whether the next message must not be handled before others are answered.
  bool MustWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (paused_ || state_.Full()) return true;
    return (writing_ || !state_.idle) && backend_.memory.budget().IsShort();
  }
  // The same for reading another message.
  bool MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (paused_ || inbox_.CheckFull() || state_.Full(inbox_.size(), inbox_.bytes())) return false;
    const bool idle = state_.idle && inbox_.empty() && !working_ && !writing_;
    return idle || !backend_.memory.budget().IsShort();
  }

  // Handles the messages in the inbox while the session has room for their answers. Runs on one
  // thread at a time, the one that set working_. In a small turn a large message waits for a large
  // one, parsed.
  void HandleInbox(WorkSize turn) ABSL_LOCKS_EXCLUDED(mutex_) {
    const CancellationScope scope(&call_.cancellation());
    SteadyClock::time_point begin = EventTime();
    SteadyClock::time_point turn_end = begin + kTurnTime;
    for (int i = 1;; ++i) {
      if (i % kMessagesPerTurn == 0 || begin >= turn_end) {
        if (backend_.workers.HasBacklog()) {
          EndTurn();
          break;
        }
        turn_end = begin + kTurnTime;
      }
      grpc::ByteBuffer message;
      bool more = false;
      if (!work_.has_value()) {
        MutexLock lock(&mutex_);
        turn_time_ = begin;
        if (state_.ready_answers == 0) nothing_waited_ = begin;
        if (inbox_.empty() || MustWait()) {
          turn_time_.reset();
          working_ = false;
          return Pump();
        }
        inbox_.TakeFirst(message);
        handled_bytes_ = message.Length();
        more = !inbox_.empty();
      }
      MessageHandling handling(begin - std::exchange(parse_time_, {}));
      const bool is_new = !work_.has_value();
      absl::Status status = is_new ? Measure(message) : absl::OkStatus();
      // Until the message is handled, or another turn goes on with it.
      const WorkMemory::Lease lease(backend_.memory.work(), work_->leased_bytes());
      if (is_new && status.ok()) {
        status = WithinMemory(
            [&] { return ParseMessage(message, backend_.max_message_bytes, request_); });
      }
      handling.OnParsed(work_->bytes);
      // If there is no memory for it to wait, this turn handles it.
      if (status.ok() && turn != WorkSize::kLarge && !Stopped() &&
          session_->SizeOf(request_) == WorkSize::kLarge && HoldParsed()) {
        EndTurn();
        parse_time_ = SteadyClock::now() - handling.begin();
        return ScheduleWork(WorkSize::kLarge);
      }
      if (status.ok() && Awaits(handling, status)) return;
      if (status.ok()) status = Accept(more);
      const MessageWork work = *std::exchange(work_, std::nullopt);
      handling.OnDone();
      begin = handling.end();
      {
        MutexLock lock(&mutex_);
        handled_bytes_ = 0;
        turn_time_ = begin;
        timings_.OnHandled(handling, request_, Session::kAnswersSynchronously && status.ok());
        if (!status.ok()) EndWith(std::move(status));
        PauseIfLimited();
        Pump();
      }
      DropSpareMemory(work, more);
    }
    ScheduleWork();
  }

  // Another turn goes on with the messages, perhaps later: nothing waits for it.
  void EndTurn() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    turn_time_.reset();
    Pump();
  }

  // Whether answers wait for those of messages that are handled next, to be sent as one.
  bool HoldsAnswers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (Session::kAnswersSynchronously) return false;
    if (!turn_time_.has_value()) return is_held_;
    return (is_held_ || !inbox_.empty()) && *turn_time_ - nothing_waited_ < kMostHeld;
  }

  // Sets work_ for a message that is not parsed yet.
  absl::Status Measure(grpc::ByteBuffer& message) {
    const absl::StatusOr<MessageWork> work =
        MeasureWork(backend_.memory.budget(), message, request_);
    work_ = work.ok() ? *work : MessageWork{message.Length()};
    return work.status();
  }

  // Whether there is memory for the parsed message to wait, which is counted then.
  bool HoldParsed() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const size_t before = std::exchange(handled_bytes_, work_->parsed_bytes);
    if (call_.memory().TrySet(MemoryUse::kRequests, request_bytes())) return true;
    handled_bytes_ = before;
    return false;
  }

  // Whether the parsed message first waits for its revision: another turn handles it then.
  bool Awaits(const MessageHandling& handling, absl::Status& status) {
    if constexpr (requires { session_->Awaits(request_); }) {
      if (std::exchange(has_waited_, false)) return false;
      const AwaitedRevision awaited = session_->Awaits(request_);
      if (awaited.waiters == nullptr) return false;
      if (!HoldParsed()) {
        status =
            MemoryExhausted("the parsed message", work_->parsed_bytes, backend_.memory.budget());
        return false;
      }
      has_waited_ = true;
      parse_time_ = SteadyClock::now() - handling.begin();
      AwaitRevision(call_, awaited, kMaxRevisionWait,
                    [self = this->shared_from_this()] { self->ScheduleWork(); });
      return true;
    }
    return false;
  }

  // Has the session handle the parsed message. `more`: others wait.
  absl::Status Accept(bool more) {
    const CountedUsage counted(call_.access() == nullptr ? nullptr : call_.access()->usage());
    const CallScope scope(call_.caller());
    return WithinMemory([&] { return session_->Accept(request_, work_->bytes, more); });
  }

  // After such a message. A stream of large messages takes the memory again, which costs little
  // beside handling them; thousands of streams that once sent one do not keep it.
  void DropSpareMemory(const MessageWork& work, bool more) {
    if (more || (work.bytes <= kMaxKeptBytes && work.parsed_bytes <= kMaxKeptParsedBytes)) return;
    request_ = {};
    session_->DropSpareMemory();
  }

  // While the principal is above its rate nothing is read: flow control holds the sender back.
  void PauseIfLimited() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (call_.access() == nullptr || paused_ || finished_ || broken_.has_value()) return;
    const absl::Duration wait = std::min(call_.access()->LimitWait(), kMaxPause);
    if (wait <= absl::ZeroDuration()) return;
    paused_ = true;
    call_.StartAlarm(absl::Now() + wait);
  }

  void Break() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!broken_.has_value()) broken_ = CancelledError();
  }

  // Sets the status that the stream ends with. The first error counts. OK, after a half-close, is
  // replaced by an error that occurs before every message is answered.
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_.has_value() || end_->ok()) end_ = std::move(status);
  }

  // Starts every operation that can be started. No callback runs from within the calls made here.
  void Pump(bool may_hold = true) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    const bool takes = !broken_.has_value() && !writing_ && !(may_hold && HoldsAnswers());
    state_ = session_->Poll(takes ? &response_ : nullptr);
    state_.has_response ? timings_.OnReady(state_.ready_answers, response_)
                        : timings_.OnReady(state_.ready_answers);
    if (!state_.failure.ok()) EndWith(state_.failure);
    if (refused_.has_value() && inbox_.empty() && !working_) EndWith(*refused_);
    // Messages that arrived before a half-close are handled; before any other end they are dropped.
    if (broken_.has_value() || (end_.has_value() && !end_->ok())) inbox_.Clear();
    if (end_.has_value() && inbox_.empty() && !working_ && !std::exchange(input_ended_, true)) {
      session_->EndInput();
      state_.idle = session_->Poll(nullptr).idle;
    }
    if (state_.has_response) WriteResponse();
    CountMemory();
    if (!broken_.has_value() && !end_.has_value() && !refused_.has_value() && !reading_ &&
        MayRead()) {
      reading_ = true;
      call_.StartRead(&incoming_);
    }
    if (!working_ && !inbox_.empty() && !MustWait()) {
      working_ = true;
      ScheduleWork();
    }
    // The end waits for a message that is being handled, not for a read: that waits for the client.
    const bool answered = end_.has_value() && inbox_.empty() && state_.idle;
    if (!writing_ && !working_ && (broken_.has_value() || answered)) {
      finished_ = true;
      if (paused_) call_.CancelAlarm();
      call_.Finish(ToGrpc(broken_.has_value() ? *broken_ : *end_));
    }
  }

  // A response that cannot be sent ends the stream: the client would take the next one for it.
  void WriteResponse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (absl::Status status = SerializeMessage(response_, outgoing_); !status.ok()) {
      broken_ = std::move(status);
      return;
    }
    writing_ = true;
    call_.StartWrite(outgoing_, MoreFollows());
    if (outgoing_.Length() > kMaxKeptBytes) response_ = {};
  }

  // Whether another response will be written soon, so that the two may be sent together. Sessions
  // that answer when a commit is done cannot tell. False every kMaxWritesTogether writes, so that
  // no response is held back for long.
  bool MoreFollows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!Session::kAnswersSynchronously || ++writes_ % kMaxWritesTogether == 0) return false;
    if (!state_.idle) return true;
    return working_ && !inbox_.empty() && inbox_.first_bytes() <= kMaxSoonAnsweredBytes &&
           !backend_.workers.HasBacklog();
  }

  Call& call_;
  const Backend backend_;
  const std::shared_ptr<Session> session_;
  uint64_t drain_id_ = 0;

  grpc::ByteBuffer incoming_;
  // The message being handled, and what it takes if it is parsed and was not handled yet. Used by the
  // thread in HandleInbox.
  typename Session::Request request_;
  std::optional<MessageWork> work_;
  // What parsing a message took that waits for another turn.
  SteadyClock::duration parse_time_{};
  // The parsed message has waited for its revision.
  bool has_waited_ = false;

  Mutex mutex_;
  // Of the last Pump. Only HandleInbox makes the session fuller, and pumps then.
  SessionState state_ ABSL_GUARDED_BY(mutex_);
  MessageInbox inbox_ ABSL_GUARDED_BY(mutex_);
  // Of the message being handled.
  size_t handled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  typename Session::Response response_ ABSL_GUARDED_BY(mutex_);
  MessageTimings timings_ ABSL_GUARDED_BY(mutex_){call_, Session::kAwaited};
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A thread is in HandleInbox, or a worker is scheduled to be.
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // No answer is sent before the polling thread has handled the events that there are.
  bool is_held_ ABSL_GUARDED_BY(mutex_) = false;
  // When the worker or the polling thread in HandleInbox was done with a message last; absent: there is none.
  std::optional<SteadyClock::time_point> turn_time_ ABSL_GUARDED_BY(mutex_);
  // turn_time_ when no answer waited to be sent, and a message was begun.
  SteadyClock::time_point nothing_waited_ ABSL_GUARDED_BY(mutex_){};
  // An alarm is pending, until which nothing is read or handled.
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set if nothing more can be sent: unanswered messages stay unanswered.
  std::optional<absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the last message that was read was dropped; none is read after it.
  std::optional<absl::Status> refused_ ABSL_GUARDED_BY(mutex_);
  // Set if the stream must end: nothing more is read.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
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
