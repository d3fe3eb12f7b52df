#include "server/rpc/unary.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/revision_waiters.h"

namespace perceptrond {
namespace {

using Handler = std::function<void(Call&, grpc::ByteBuffer&)>;

// The longest time that a call waits for a revision.
constexpr std::chrono::seconds kMostWait{10};

// After this long a call that was refused may find room.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

class OneRequest final : public Reactor {
 public:
  OneRequest(Call& call, Drain& drain, const Handler& handler)
      : call_(call), drain_(drain), handler_(handler) {}

  void Start() {
    if (call_.slow_calls().enabled()) call_.timing().Start(Part::kReceive, EventTime());
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

void AwaitRevision(const Call& call, const AwaitedRevision& awaited, std::function<void()> resume) {
  struct Wait {
    std::function<void()> resume;
    std::atomic<bool> ended{false};
    grpc::Alarm alarm;
  };
  const auto wait = std::make_shared<Wait>();
  wait->resume = std::move(resume);
  // The call may be over as soon as it was resumed.
  const auto deadline =
      std::min(call.context().deadline(), std::chrono::system_clock::now() + kMostWait);
  const auto end = [](Wait& one) {
    if (!one.ended.exchange(true)) std::exchange(one.resume, nullptr)();
  };
  const uint64_t number = awaited.waiters->Await(awaited.revision, [wait, end] { end(*wait); });
  // It holds the waiters, and they it, until the revision or the deadline.
  wait->alarm.Set(deadline, [weak = std::weak_ptr(wait), end, awaited, number](bool /*ok*/) {
    if (const std::shared_ptr<Wait> alive = weak.lock()) end(*alive);
    awaited.waiters->Remove(awaited.revision, number);
  });
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
