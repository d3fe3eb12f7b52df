#include "server/rpc/unary.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/revision_waiters.h"
#include "core/sync/mutex.h"

namespace perceptrond {
namespace {

using Handler = std::function<void(Call&, grpc::ByteBuffer&)>;

// The longest time that a call waits for a revision.
constexpr std::chrono::seconds kMostWait{10};
// How soon a call that waits notices that it is cancelled.
constexpr std::chrono::milliseconds kWaitInterval{100};

// After this long a call that was refused may find room.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

class OneRequest final : public Reactor {
 public:
  OneRequest(Call& call, Drain& drain, const Handler& handler)
      : call_(call), drain_(drain), handler_(handler) {}

  void Start() {
    // A call that might have gone to another server is timed since it came.
    if (call_.slow_calls().enabled() && !call_.timing().started())
      call_.timing().Start(Part::kReceive, EventTime());
    call_.StartReadRequest(&request_);
  }
  void OnReadDone(bool ok) override {
    if (decided_.exchange(true)) return;
    if (!ok) return call_.Finish(ToGrpc(MissingRequest()));
    in_flight_.emplace(drain_);
    call_.timing().SwitchAt(Part::kQueue, EventTime());
    handler_(call_, request_);
  }
  void OnRequestTimeout() override {
    if (!decided_.exchange(true)) call_.Finish(ToGrpc(RequestTimeout()));
  }

 private:
  Call& call_;
  Drain& drain_;
  const Handler& handler_;
  grpc::ByteBuffer request_;
  // Whether the request has arrived or its time is over.
  std::atomic<bool> decided_{false};
  std::optional<Drain::InFlightCall> in_flight_;
};

}  // namespace

void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& response) {
  if (status.ok()) {
    call.FinishWith(response);
  } else {
    call.Finish(ToGrpc(status));
  }
}

absl::Status ServerBusy() {
  return WithRetry(
      MakeError(
          absl::StatusCode::kResourceExhausted, "SERVER_BUSY",
          "more calls wait than the server can answer soon: try again later, with fewer calls "
          "at once, or raise the server's --max-queue-wait and --max-queued-calls"),
      kRetryDelay);
}

void ScheduleCall(Workers& workers, WorkSize size, Call& call, Workers::Work work) {
  Workers::Work whole = [&workers, size, &call, since = absl::Now(),
                         own = std::move(work)]() mutable {
    const CancellationScope scope(&call.cancellation());
    if (Stopped()) return call.Finish(ToGrpc(StoppedError()));
    if (workers.IsLate(size, since)) return call.Finish(ToGrpc(ServerBusy()));
    own();
  };
  if (!workers.TrySchedule(size, whole)) call.Finish(ToGrpc(ServerBusy()));
}

namespace {

// A call that waits for a revision. It holds the waiters, and they it, until it ends.
class RevisionWait : public std::enable_shared_from_this<RevisionWait> {
 public:
  RevisionWait(const Call& call, AwaitedRevision awaited, std::function<void()> resume)
      : call_(call),
        awaited_(std::move(awaited)),
        deadline_(std::min(call.context().deadline(), Clock::now() + kMostWait)),
        resume_(std::move(resume)) {}

  void Start() {
    const uint64_t number =
        awaited_.waiters->Await(awaited_.revision, [self = shared_from_this()] { self->End(); });
    MutexLock lock(&mutex_);
    number_ = number;
    if (resume_ != nullptr) SetAlarm();
  }

 private:
  using Clock = std::chrono::system_clock;

  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::function<void(bool)> on_time = [weak = weak_from_this()](bool /*ok*/) {
      if (const std::shared_ptr<RevisionWait> self = weak.lock()) self->OnAlarm();
    };
    // Another one each time: an alarm may not be set while it runs.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::min(deadline_, Clock::now() + kWaitInterval), on_time);
  }
  void OnAlarm() ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t number = 0;
    {
      MutexLock lock(&mutex_);
      // The call exists until it is resumed.
      if (resume_ == nullptr) return;
      const bool goes_on = call_.cancellation().reason() == StopReason::kNone;
      if (goes_on && Clock::now() < deadline_) return SetAlarm();
      number = number_;
    }
    End();
    awaited_.waiters->Remove(awaited_.revision, number);
  }
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void()> resume;
    {
      MutexLock lock(&mutex_);
      resume.swap(resume_);
    }
    if (resume != nullptr) resume();
  }

  const Call& call_;
  const AwaitedRevision awaited_;
  const Clock::time_point deadline_;
  Mutex mutex_;
  // Null once it was called.
  std::function<void()> resume_ ABSL_GUARDED_BY(mutex_);
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void AwaitRevision(const Call& call, const AwaitedRevision& awaited, std::function<void()> resume) {
  std::make_shared<RevisionWait>(call, awaited, std::move(resume))->Start();
}

absl::Status LoadModel(Store& store, const std::string& name) {
  return store.Acquire(name).status();
}

absl::Status HoldRequest(Call& call, const Backend& backend, const grpc::ByteBuffer& request) {
  if (absl::Status status = CheckMessageSize(request, backend.max_message_bytes); !status.ok())
    return status;
  if (call.memory().TrySet(MemoryUse::kRequests, request.Length())) return absl::OkStatus();
  return MemoryExhausted("the request", request.Length(), backend.memory.budget());
}

absl::Status HoldAnswer(Call& call, const Backend& backend, const grpc::ByteBuffer& answer) {
  if (call.memory().TrySet(MemoryUse::kAnswers, answer.Length())) return absl::OkStatus();
  return MemoryExhausted("the answer", answer.Length(), backend.memory.budget());
}

Call::Method OnRequest(Drain& drain, Handler handler) {
  return [&drain, handler = std::move(handler)](Call& call) {
    const auto reactor = std::make_shared<OneRequest>(call, drain, handler);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond
