#include "server/rpc/unary.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/error/stopped.h"

namespace perceptrond {
namespace {

using Handler = std::function<void(Call&, grpc::ByteBuffer&)>;

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

absl::Status LoadModel(Store& store, const std::string& name) {
  return store.Acquire(name).status();
}

absl::Status HoldRequest(Call& call, const Backend& backend, const grpc::ByteBuffer& request) {
  if (absl::Status status = CheckMessageSize(request, backend.max_message_bytes); !status.ok())
    return status;
  if (call.memory().TrySet(MemoryUse::kRequests, request.Length())) return absl::OkStatus();
  return MemoryExhausted("the request", request.Length(), backend.memory.budget());
}

bool HoldParsed(Call& call, const Backend& backend, const MessageWork& work) {
  if (call.memory().TrySet(MemoryUse::kRequests, work.parsed_bytes)) return true;
  call.Finish(
      ToGrpc(MemoryExhausted("the parsed request", work.parsed_bytes, backend.memory.budget())));
  return false;
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
