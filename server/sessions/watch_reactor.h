// One WatchModel call: sends the model's report whenever it has changed, at most once per interval.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/store/store.h"
#include "core/sync/cancellation.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Ownership: the call keeps the reactor, and so does every listener and worker that runs.
class WatchReactor final : public Reactor, public std::enable_shared_from_this<WatchReactor> {
 public:
  static void Start(Call& call, const Backend& backend);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnAlarm(bool ok) override;
  void OnRequestTimeout() override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(Call& call, const Backend& backend)
      : call_(call), backend_(backend), writer_(call) {}

  absl::Status ReadRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has a worker get the model's summary, since the model may have to be read from the journal.
  void ScheduleCheck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the report if it has changed, and waits for the interval otherwise.
  void OnSummary(absl::StatusOr<ModelSummary> summary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Subscribes to the model's deletion.
  void Subscribe(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForInterval() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Call& call_;
  const Backend backend_;
  uint64_t drain_id_ = 0;
  grpc::ByteBuffer incoming_;
  // Cancelled also when the call is over, which a check may outlive.
  CancellationToken token_;

  Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  // The uid of the model; empty before the first check.
  std::string uid_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<OpenStreams::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  bool alarm_pending_ ABSL_GUARDED_BY(mutex_) = false;
  // Etag and serialized report of the last response.
  std::string last_sent_ ABSL_GUARDED_BY(mutex_);
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
