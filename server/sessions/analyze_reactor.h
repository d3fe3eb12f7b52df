// Analyze calls.
#pragma once

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/convergence/analysis/analysis.h"
#include "core/store/store.h"
#include "core/sync/cancellation.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/sessions/analysis_queue.h"

namespace perceptrond {

// One Analyze call: waits in the queue, reports its progress, and ends with the result. Ownership:
// the call, the queue and each running listener keep the reactor.
class AnalyzeReactor final : public Reactor,
                             public AnalysisQueue::Job,
                             public std::enable_shared_from_this<AnalyzeReactor> {
 public:
  static void Start(Call& call, const Backend& backend, AnalysisQueue& queue);

  void OnQueued(size_t jobs_ahead) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const override { return token_.reason() != StopReason::kNone; }
  const std::string& model() const override { return request_.model(); }
  bool small() const override { return small_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnRequestTimeout() override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AnalyzeReactor(Call& call, const Backend& backend, AnalysisQueue& queue)
      : call_(call), backend_(backend), queue_(queue), writer_(call) {}

  // Checks the request and enqueues the analysis.
  void Enqueue() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRequest();
  // When the analysis that begins now ends: after the request's time limit, at most the server's,
  // and early enough that the answer arrives before the call's deadline.
  AnalysisMonitor::Clock::time_point Deadline() const;
  // Analyzes the model, replaces its weights if the request says so, and makes both durable.
  absl::Status Analyze(::perceptron::v1::AnalysisResult& result);
  absl::Status ReplaceWeights(Model& model, const NewWeights& separator,
                              ::perceptron::v1::AnalysisResult& result);
  void SendProgress(const ::perceptron::v1::AnalysisProgress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finish(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // For the log of slow calls: the time from now on is spent on `part`.
  void SwitchTo(Part part) ABSL_LOCKS_EXCLUDED(mutex_);

  Call& call_;
  const Backend backend_;
  AnalysisQueue& queue_;
  uint64_t drain_id_ = 0;
  grpc::ByteBuffer incoming_;
  // Constant once the queue has the job.
  ::perceptron::v1::AnalyzeRequest request_;
  bool small_ = false;
  // Cancelled also when the call is over, which the reactor outlives.
  CancellationToken token_;
  // Used by the queue's thread alone.
  absl::Time last_progress_ = absl::InfinitePast();

  Mutex mutex_;
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
