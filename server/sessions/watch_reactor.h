// One WatchModel call: sends the model's report when it has changed, at most once an interval.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/model/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/drain.h"

namespace perceptrond {

// The call keeps it; listeners under way keep it longer.
class WatchReactor final : public Reactor, public std::enable_shared_from_this<WatchReactor> {
 public:
  static void Start(Call& call, const Backend& backend);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnAlarm(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(Call& call, const Backend& backend) : call_(call), backend_(backend) {}

  // Has a worker look: the model may have to be loaded.
  void LookSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the report if it has changed, else waits for the next time.
  void GetSummary(absl::StatusOr<ModelSummary> summary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hears of the model's deletion from now on.
  void Begin(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Call& call_;
  const Backend backend_;
  uint64_t drain_id_ = 0;
  grpc::ByteBuffer incoming_;

  Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  // Of the model watched; empty before the first look.
  std::string uid_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<OpenStreams::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  ::perceptron::v1::WatchModelResponse response_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  // What was sent last: the settings' etag and the serialized report.
  std::string last_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // To be sent when the write under way is done.
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perceptrond
