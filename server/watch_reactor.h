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
#include "server/drain.h"

namespace perceptrond {

// Deletes itself when gRPC is done with it; callbacks under way keep it alive.
class WatchReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // An error for `received`: what came was no request; the call ends with it.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(
      Store& store, Drain& drain, const absl::Status& received,
      const ::perceptron::v1::WatchModelRequest& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(Store& store, Drain& drain) : store_(store), drain_(drain) {}

  void Run(const absl::Status& received, const ::perceptron::v1::WatchModelRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the report if it has changed, else waits for the next time.
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hears of the model's deletion from now on.
  void Begin(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  Drain& drain_;
  uint64_t drain_id_ = 0;
  // gRPC's hold on the reactor.
  std::shared_ptr<WatchReactor> self_;

  Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  // Of the model watched; empty before the first look.
  std::string uid_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<OpenStreams::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  // A new one each time: the old one may be in the middle of its callback.
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
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
