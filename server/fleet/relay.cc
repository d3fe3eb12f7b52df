#include "server/fleet/relay.h"

#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <utility>

#include "core/error/error.h"
#include "core/memory/memory_budget.h"
#include "core/sync/mutex.h"
#include "server/access/admission.h"
#include "server/fleet/example_count.h"
#include "server/fleet/follower_learn_session.h"
#include "server/fleet/routing.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

constexpr char kLearn[] = "/perceptron.v1.LearningService/Learn";

// One relayed call. The call it was received as keeps it, and so does the call it is passed on as,
// until it is done.
class Relay final : public Reactor, public WriterCall, public std::enable_shared_from_this<Relay> {
 public:
  Relay(WriterCalls& calls, const Backend& backend, Call& call, const Destination& to,
        RelayKind kind, FollowedRows& rows)
      : WriterCall(to.model_id, to.epoch),
        kind_(kind),
        rows_(rows),
        calls_(calls),
        backend_(backend),
        call_(call),
        channel_(calls.ChannelTo(to.address)),
        stub_(channel_),
        upstream_(*this) {}

  void Start() {
    call_.UseMemory(backend_.memory);
    call_.timing().Switch(Part::kForward);
    if (const auto deadline = call_.context().deadline(); deadline != deadline.max())
      context_.set_deadline(deadline);
    CallOrigin(call_).AddTo(context_);
    self_ = shared_from_this();
    const std::weak_ptr<Relay> weak = self_;
    backend_.drain.Add(
        [weak] {
          if (const std::shared_ptr<Relay> alive = weak.lock()) alive->OnDrain();
        },
        drain_id_);
    stub_.PrepareBidiStreamingCall(&context_, call_.path(), {}, &upstream_);
    // Messages of the client come while nothing else is under way.
    upstream_.AddHold();
    upstream_.StartRead(&answer_);
    upstream_.StartCall();
    call_.StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      if (absl::Status status = HoldMessages(); !status.ok()) return End(status);
      Count();
    }
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (kind_ == RelayKind::kUpload) return PassOnUpload(ok);
    ok ? upstream_.StartWrite(&message_) : upstream_.StartWritesDone();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) context_.TryCancel();
    if (PassOnEnd(ok)) return;
    ReadAnswer();
  }
  void OnCancel() override { context_.TryCancel(); }
  void OnRequestTimeout() override { End(RequestTimeout()); }
  void OnDone() override {
    backend_.drain.Remove(drain_id_);
    calls_.Remove(*this);
  }

  void End(const absl::Status& why) override {
    {
      MutexLock lock(&mutex_);
      if (why_.ok()) why_ = why;
    }
    context_.TryCancel();
  }

 private:
  class Upstream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Upstream(Relay& relay) : relay_(relay) {}
    void OnReadDone(bool ok) override { relay_.OnAnswer(ok); }
    void OnWriteDone(bool ok) override { relay_.OnPassedOn(ok); }
    void OnDone(const grpc::Status& status) override { relay_.OnEnd(status); }

   private:
    Relay& relay_;
  };

  // The other server may take the end of a call that is cancelled for the end of what is sent. So the last message is
  // passed on with the end: what this server ends never arrives whole.
  void PassOnUpload(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ok) {
      if (IsDenied()) return context_.TryCancel();
      // Nor has a client that is gone sent all: then this write fails. The other call does not end meanwhile.
      upstream_.AddHold();
      is_ending_ = true;
      return call_.StartWrite({});
    }
    // One without content ends nothing.
    if (last_.Valid() && message_.Length() == 0) return call_.StartReadRequest(&message_);
    message_.Swap(&last_);
    message_.Valid() ? upstream_.StartWrite(&message_) : call_.StartReadRequest(&message_);
  }
  // Whether what was written says whether the client of an upload has sent all.
  bool PassOnEnd(bool ok) {
    MutexLock lock(&mutex_);
    if (!std::exchange(is_ending_, false)) return false;
    if (ok && !ended_) {
      sent_all_ = true;
      last_.Valid() ? upstream_.StartWriteLast(&last_, {}) : upstream_.StartWritesDone();
    }
    upstream_.RemoveHold();
    return true;
  }
  bool IsDenied() const { return call_.access() != nullptr && !call_.access()->denied().ok(); }
  void OnDrain() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (kind_ == RelayKind::kCall) return;
    {
      MutexLock lock(&mutex_);
      if (kind_ == RelayKind::kUpload && sent_all_) return;
    }
    End(DrainingError());
  }

  // The last message, and of an upload the one before. RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE, MEMORY_EXHAUSTED).
  absl::Status HoldMessages() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    absl::Status status = CheckMessageSize(message_, backend_.max_message_bytes);
    const size_t bytes = message_.Length() + last_.Length();
    if (status.ok() && !call_.memory().TrySet(MemoryUse::kRequests, bytes))
      status = MemoryExhausted("the request", bytes, backend_.memory.budget());
    return status;
  }
  // The last answer is with the client, or is not for it. Also for a client that is no longer there: the end of the other
  // call comes with a read that fails.
  void ReadAnswer() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      answer_.Clear();
      call_.memory().Set(MemoryUse::kAnswers, 0);
    }
    upstream_.StartRead(&answer_);
  }

  // What the caller's principal is counted for is counted here: the other server knows no limits.
  void Count() {
    call_.timing().bytes = message_.Length();
    const size_t examples = call_.path() == kLearn ? CountExamplesIn(message_) : 0;
    call_.timing().rows = examples;
    rows_.forwarded.fetch_add(examples, std::memory_order_relaxed);
    if (call_.access() == nullptr || examples == 0) return;
    if (const std::shared_ptr<PrincipalUsage> usage = call_.access()->usage(); usage != nullptr)
      usage->AddExamples(examples);
  }

  void OnAnswer(bool ok) {
    if (ok) {
      if (HoldAnswer()) return call_.StartWrite(answer_);
      End(MemoryExhausted("the answer", answer_.Length(), backend_.memory.budget()));
      return ReadAnswer();
    }
    call_.timing().Switch(Part::kWrite);
    MutexLock lock(&mutex_);
    // No answer is being sent to the client: it is read only once the one before was. Nothing more
    // is passed on: the end may come.
    ended_ = true;
    upstream_.RemoveHold();
  }
  bool HoldAnswer() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return call_.memory().TrySet(MemoryUse::kAnswers, answer_.Length());
  }
  void OnPassedOn(bool ok) {
    MutexLock lock(&mutex_);
    message_.Clear();
    call_.memory().Set(MemoryUse::kRequests, last_.Length());
    // If it failed, the end comes.
    if (!ok || ended_) return;
    if (kind_ != RelayKind::kUpload) return call_.StartRead(&message_);
    if (!sent_all_) call_.StartReadRequest(&message_);
  }
  void OnEnd(const grpc::Status& status) {
    const std::shared_ptr<Relay> self = std::move(self_);
    grpc::Status end = status;
    {
      MutexLock lock(&mutex_);
      if (!why_.ok()) {
        end = ToGrpc(why_);
      } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                 status.error_details().empty()) {
        // Of gRPC itself: the server could not be reached.
        end = ToGrpc(WriterUnreachableError(status.error_message()));
      }
    }
    call_.Finish(end);
  }

  const RelayKind kind_;
  FollowedRows& rows_;
  WriterCalls& calls_;
  const Backend backend_;
  Call& call_;
  uint64_t drain_id_ = 0;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  // Until the other server's end is known.
  std::shared_ptr<Relay> self_;
  // From the client to the other server, and back.
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answer_;
  Mutex mutex_;
  // Of an upload: what came last from the client.
  grpc::ByteBuffer last_ ABSL_GUARDED_BY(mutex_);
  // The other server has no more answers.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The client of an upload has no more messages, or is gone.
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  // It has no more messages.
  bool sent_all_ ABSL_GUARDED_BY(mutex_) = false;
  // Why this server ends the call.
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  Upstream upstream_;
};

}  // namespace

void RunRelay(WriterCalls& calls, const Backend& backend, Call& call, const Destination& to,
              RelayKind kind, FollowedRows& rows) {
  if (const absl::Status limited =
          call.access() == nullptr ? absl::OkStatus() : call.access()->CheckLimit();
      !limited.ok()) {
    call.Bind(std::make_shared<Reactor>());
    return call.Finish(ToGrpc(limited));
  }
  const auto relay = std::make_shared<Relay>(calls, backend, call, to, kind, rows);
  calls.Add(relay);
  call.Bind(relay);
  relay->Start();
}

}  // namespace perceptrond
