#include "server/sessions/watch_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/fleet/fleet.h"
#include "server/rpc/backend.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kMinInterval = absl::Milliseconds(50);

// UNAVAILABLE (WRITER_CHANGED) once another server has the current state: the client comes again, and its
// call goes there.
absl::StatusOr<ModelSummary> GetReport(Store& store, const std::string& name) {
  absl::StatusOr<ModelSummary> summary = store.GetReport(name);
  if (!summary.ok() || !summary->stale_since.has_value()) return summary;
  if (store.fleet()->HasOtherWriter(summary->id)) return WriterChangedError();
  return summary;
}

}  // namespace

void WatchReactor::Start(Call& call, const Backend& backend) {
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(call, backend));
  call.Bind(reactor);
  call.UseMemory(backend.memory);
  call.StartReadRequest(&reactor->incoming_);
  backend.drain.Add(
      [weak = std::weak_ptr<WatchReactor>(reactor)] {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        alive->token_.Cancel(StopReason::kDraining);
        MutexLock lock(&alive->mutex_);
        alive->End(DrainingError());
      },
      reactor->drain_id_);
}

void WatchReactor::OnReadDone(bool ok) {
  MutexLock lock(&mutex_);
  if (writer_.finished()) return;
  const absl::Status status = ok ? ReadRequest() : MissingRequest();
  if (!status.ok()) return End(status);
  ScheduleCheck();
}

absl::Status WatchReactor::ReadRequest() {
  ::perceptron::v1::WatchModelRequest request;
  if (absl::Status status = ParseSmallRequest(incoming_, request); !status.ok()) return status;
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  name_ = request.name();
  if (!request.has_min_interval()) return absl::OkStatus();
  interval_ = absl::Seconds(request.min_interval().seconds()) +
              absl::Nanoseconds(request.min_interval().nanos());
  if (interval_ >= kMinInterval) return absl::OkStatus();
  return InvalidField("INVALID_FIELD", "min_interval",
                      absl::StrCat(absl::FormatDuration(interval_), " is below ",
                                   absl::FormatDuration(kMinInterval)));
}

void WatchReactor::ScheduleCheck() {
  const WorkSize size = PlacementOfReport(backend_.store, name_).size;
  backend_.workers.Schedule(size, [self = shared_from_this(), name = name_] {
    // The call is over, or is being ended.
    if (self->token_.reason() != StopReason::kNone) return;
    const CancellationScope scope(&self->token_);
    absl::StatusOr<ModelSummary> summary = absl::UnknownError("");
    const absl::Status status = WithinMemory([&] {
      summary = GetReport(self->backend_.store, name);
      return summary.status();
    });
    if (!status.ok()) summary = status;
    MutexLock lock(&self->mutex_);
    self->OnSummary(std::move(summary));
  });
}

void WatchReactor::OnSummary(absl::StatusOr<ModelSummary> summary) {
  if (writer_.finished() || writer_.writing()) return;
  if (!summary.ok()) return End(summary.status());
  if (uid_.empty()) {
    // The model may have been deleted since the summary was made: it is checked once more.
    Subscribe(summary->settings.uid());
    return ScheduleCheck();
  }
  // Another model may have the name now.
  if (summary->settings.uid() != uid_) return End(ModelNotFound(name_));
  ::perceptron::v1::WatchModelResponse response;
  *response.mutable_model() = ToProto(*summary);
  std::string now = response.model().etag() + response.model().report().SerializeAsString();
  if (now == last_sent_) return WaitForInterval();
  last_sent_ = std::move(now);
  // Of many clients that do not read, each would keep an answer, which has up to 10,000 class weights or 1,024 inputs.
  if (const size_t bytes = response.ByteSizeLong();
      !call_.memory().TrySet(MemoryUse::kAnswers, bytes))
    return End(MemoryExhausted("the report", bytes, backend_.memory.budget()));
  writer_.Write(response);
}

void WatchReactor::Subscribe(const std::string& uid) {
  uid_ = uid;
  ticket_ =
      backend_.store.streams().Open(uid_, "", [weak = weak_from_this()](const absl::Status& why) {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        MutexLock lock(&alive->mutex_);
        alive->End(why);
      });
}

void WatchReactor::WaitForInterval() {
  if (writer_.finished()) return;
  alarm_pending_ = true;
  call_.StartAlarm(absl::Now() + interval_);
}

void WatchReactor::OnAlarm(bool /*ok*/) {
  MutexLock lock(&mutex_);
  alarm_pending_ = false;
  if (!writer_.finished()) ScheduleCheck();
}

void WatchReactor::End(const absl::Status& status) {
  if (writer_.finished()) return;
  if (alarm_pending_) call_.CancelAlarm();
  writer_.Finish(status);
}

void WatchReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writer_.OnWriteDone(ok);
  WaitForInterval();
}

void WatchReactor::OnRequestTimeout() {
  MutexLock lock(&mutex_);
  End(RequestTimeout());
}

void WatchReactor::OnCancel() {
  token_.Cancel();
  MutexLock lock(&mutex_);
  End(CancelledError());
}

void WatchReactor::OnDone() {
  token_.Cancel();
  backend_.drain.Remove(drain_id_);
}

}  // namespace perceptrond
