#include "server/sessions/watch_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/model/error.h"
#include "server/rpc/message.h"
#include "server/rpc/model_name.h"
#include "server/rpc/status.h"
#include "server/rpc/workers.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(50);

}  // namespace

void WatchReactor::Start(Call& call, const Backend& backend) {
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(call, backend));
  call.Bind(reactor);
  call.StartRead(&reactor->incoming_);
  backend.drain.Add(
      [weak = std::weak_ptr<WatchReactor>(reactor)] {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        MutexLock lock(&alive->mutex_);
        alive->End(ToGrpc(DrainingError()));
      },
      reactor->drain_id_);
}

void WatchReactor::OnReadDone(bool ok) {
  MutexLock lock(&mutex_);
  const absl::Status status = ok ? ReadRequest() : NoRequest();
  if (!status.ok()) return End(ToGrpc(status));
  LookSoon();
}

void WatchReactor::LookSoon() {
  backend_.workers.Do([self = shared_from_this(), name = name_] {
    absl::StatusOr<ModelSummary> summary = self->backend_.store.Get(name);
    MutexLock lock(&self->mutex_);
    self->GetSummary(std::move(summary));
  });
}

absl::Status WatchReactor::ReadRequest() {
  ::perceptron::v1::WatchModelRequest request;
  if (absl::Status status = ParseMessage(incoming_, backend_.max_message_bytes, request);
      !status.ok())
    return status;
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  name_ = request.name();
  if (!request.has_min_interval()) return absl::OkStatus();
  interval_ = absl::Seconds(request.min_interval().seconds()) +
              absl::Nanoseconds(request.min_interval().nanos());
  if (interval_ >= kShortestInterval) return absl::OkStatus();
  return InvalidField("INVALID_FIELD", "min_interval",
                      absl::StrCat("is below ", absl::FormatDuration(kShortestInterval)));
}

void WatchReactor::GetSummary(absl::StatusOr<ModelSummary> summary) {
  if (finished_ || writing_) return;
  if (!summary.ok()) return End(ToGrpc(summary.status()));
  if (uid_.empty()) {
    Begin(summary->settings.uid());
    return LookSoon();
  }
  // Another model may have got the name.
  if (summary->settings.uid() != uid_) return End(ToGrpc(ModelNotFound(name_)));
  // Settings that are as large as the model.
  if (summary->settings.learner().has_starting_weights())
    summary->settings.mutable_learner()->mutable_starting_weights()->Clear();
  *response_.mutable_model() = ToProto(*summary);
  std::string now = response_.model().etag() + response_.model().report().SerializeAsString();
  if (now == last_) return Wait();
  last_ = std::move(now);
  if (absl::Status status = SerializeMessage(response_, outgoing_); !status.ok())
    return End(ToGrpc(status));
  writing_ = true;
  call_.StartWrite(outgoing_);
}

// The model may be gone since it was looked at: it is looked at again from here on.
void WatchReactor::Begin(const std::string& uid) {
  uid_ = uid;
  ticket_ =
      backend_.store.streams().Open(uid_, "", [weak = weak_from_this()](const absl::Status& why) {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        MutexLock lock(&alive->mutex_);
        alive->End(ToGrpc(why));
      });
}

void WatchReactor::Wait() {
  if (finished_) return;
  waiting_ = true;
  call_.StartAlarm(absl::Now() + interval_);
}

void WatchReactor::OnAlarm(bool /*ok*/) {
  MutexLock lock(&mutex_);
  waiting_ = false;
  if (!finished_) LookSoon();
}

void WatchReactor::End(const grpc::Status& status) {
  if (finished_ || end_.has_value()) return;
  if (writing_) {
    end_ = status;
    return;
  }
  finished_ = true;
  if (waiting_) call_.CancelAlarm();
  call_.Finish(status);
}

void WatchReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (end_.has_value()) return End(*std::exchange(end_, std::nullopt));
  if (!ok) return End(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher is gone"));
  Wait();
}

void WatchReactor::OnCancel() {
  MutexLock lock(&mutex_);
  End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
}

void WatchReactor::OnDone() { backend_.drain.Remove(drain_id_); }

}  // namespace perceptrond
