#include "server/watch_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/model/error.h"
#include "server/convert.h"
#include "server/message.h"
#include "server/model_name.h"
#include "server/status.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kShortestInterval = absl::Milliseconds(50);

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchReactor::Start(
    Store& store, Drain& drain, const absl::Status& received,
    const ::perceptron::v1::WatchModelRequest& request) {
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(store, drain));
  reactor->self_ = reactor;
  const std::weak_ptr<WatchReactor> weak = reactor;
  drain.Add(
      [weak] {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        MutexLock lock(&alive->mutex_);
        alive->End(ToGrpc(DrainingError()));
      },
      reactor->drain_id_);
  reactor->Run(received, request);
  return reactor.get();
}

void WatchReactor::Run(const absl::Status& received,
                       const ::perceptron::v1::WatchModelRequest& request) {
  MutexLock lock(&mutex_);
  if (!received.ok()) return End(ToGrpc(received));
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok())
    return End(ToGrpc(status));
  name_ = request.name();
  if (request.has_min_interval()) {
    interval_ = absl::Seconds(request.min_interval().seconds()) +
                absl::Nanoseconds(request.min_interval().nanos());
    if (interval_ < kShortestInterval) {
      return End(
          ToGrpc(InvalidField("INVALID_FIELD", "min_interval",
                              absl::StrCat("is below ", absl::FormatDuration(kShortestInterval)))));
    }
  }
  Look();
}

void WatchReactor::Look() {
  if (finished_ || writing_) return;
  absl::StatusOr<ModelSummary> summary = store_.Get(name_);
  if (!summary.ok()) return End(ToGrpc(summary.status()));
  if (uid_.empty()) {
    Begin(summary->settings.uid());
    return Look();
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
  StartWrite(&outgoing_);
}

// The model may be gone since it was looked at: it is looked at again from here on.
void WatchReactor::Begin(const std::string& uid) {
  uid_ = uid;
  ticket_ = store_.streams().Open(
      uid_, "", [weak = std::weak_ptr<WatchReactor>(self_)](const absl::Status& why) {
        const std::shared_ptr<WatchReactor> alive = weak.lock();
        if (alive == nullptr) return;
        MutexLock lock(&alive->mutex_);
        alive->End(ToGrpc(why));
      });
}

void WatchReactor::Wait() {
  if (finished_) return;
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(absl::Now() + interval_),
              [weak = std::weak_ptr<WatchReactor>(self_)](bool /*on_time*/) {
                const std::shared_ptr<WatchReactor> alive = weak.lock();
                if (alive == nullptr) return;
                MutexLock lock(&alive->mutex_);
                alive->Look();
              });
}

void WatchReactor::End(const grpc::Status& status) {
  if (finished_ || end_.has_value()) return;
  if (writing_) {
    end_ = status;
    return;
  }
  finished_ = true;
  if (alarm_ != nullptr) alarm_->Cancel();
  Finish(status);
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

void WatchReactor::OnDone() {
  drain_.Remove(drain_id_);
  const std::shared_ptr<WatchReactor> last = std::move(self_);
}

}  // namespace perceptrond
