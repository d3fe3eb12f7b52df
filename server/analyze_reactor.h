// One Analyze call: waits for its turn, says how far it is, and ends with the result.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/model/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "server/analysis_queue.h"
#include "server/drain.h"

namespace perceptrond {

// gRPC, the queue and the drain each keep it alive while they use it.
class AnalyzeReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                             public AnalysisQueue::Job {
 public:
  // An error for `received`: what came was no request; the call ends with it.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(
      Store& store, AnalysisQueue& queue, Drain& drain, const absl::Status& received,
      const ::perceptron::v1::AnalyzeRequest& request);

  void Wait(size_t before) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const override { return cancelled_; }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AnalyzeReactor(Store& store, Drain& drain, const ::perceptron::v1::AnalyzeRequest& request)
      : store_(store), drain_(drain), request_(request) {}

  absl::Status Check() const;
  // Analyzes, adopts if asked to, and makes both durable.
  absl::Status Analyze(::perceptron::v1::AnalysisResult& result);
  absl::Status Adopt(Model& model, const NewWeights& separator,
                     ::perceptron::v1::AnalysisResult& result);
  void TellProgress(const ::perceptron::v1::AnalysisProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what waits, or ends, unless a write is under way.
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  Drain& drain_;
  const ::perceptron::v1::AnalyzeRequest request_;
  uint64_t drain_id_ = 0;
  // gRPC's hold on the reactor.
  std::shared_ptr<AnalyzeReactor> self_;
  std::atomic<bool> cancelled_ = false;
  // The queue's thread's own.
  absl::Time told_ = absl::InfinitePast();

  Mutex mutex_;
  // To be sent when the write under way is done; progress gives way to what is newer.
  std::optional<::perceptron::v1::AnalyzeResponse> next_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perceptrond
