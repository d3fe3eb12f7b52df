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
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/drain.h"
#include "server/sessions/analysis_queue.h"

namespace perceptrond {

// The call, the queue and the drain each keep it alive while they use it.
class AnalyzeReactor final : public Reactor,
                             public AnalysisQueue::Job,
                             public std::enable_shared_from_this<AnalyzeReactor> {
 public:
  static void Start(Call& call, const Backend& backend, AnalysisQueue& queue);

  void Wait(size_t before) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const override { return cancelled_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AnalyzeReactor(Call& call, const Backend& backend, AnalysisQueue& queue)
      : call_(call), backend_(backend), queue_(queue) {}

  void Begin();
  absl::Status ReadRequest();
  // Analyzes, adopts if asked to, and makes both durable.
  absl::Status Analyze(::perceptron::v1::AnalysisResult& result);
  absl::Status ReplaceWeights(Model& model, const NewWeights& separator,
                              ::perceptron::v1::AnalysisResult& result);
  void TellProgress(const ::perceptron::v1::AnalysisProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what waits, or ends, unless a write is under way.
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Call& call_;
  const Backend backend_;
  AnalysisQueue& queue_;
  uint64_t drain_id_ = 0;
  grpc::ByteBuffer incoming_;
  // Read before the queue has it.
  ::perceptron::v1::AnalyzeRequest request_;
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
