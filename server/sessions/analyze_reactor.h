// Analyze calls, and the queue that runs their analyses one at a time.
#pragma once

#include <grpcpp/grpcpp.h>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Runs analyses one at a time, in the order of their submission: each may use a core for seconds,
// and serving needs the others. Thread contract: safe for any number of threads.
class AnalysisQueue {
 public:
  // The methods are called on the queue's thread, unless they say otherwise.
  class Job {
   public:
    virtual ~Job() = default;
    // The job waits for `jobs_ahead` others. Called again when that number changes; the first time
    // on the thread that submits the job.
    virtual void OnQueued(size_t jobs_ahead) = 0;
    virtual void Run() = 0;
    // Whether the job should not run, since its client is gone. Any thread may call it.
    virtual bool cancelled() const = 0;
  };

  AnalysisQueue() : thread_([this] { RunAll(); }) {}
  // Waits for the running job, which should have been cancelled, and drops the others.
  ~AnalysisQueue();

  void Submit(std::shared_ptr<Job> job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void NotifyPositions() ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  // The first job is running, or the next to run.
  std::deque<std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since it uses all the others.
  std::thread thread_;
};

// One Analyze call: waits in the queue, reports its progress, and ends with the result. Ownership:
// the call, the queue and each running listener keep the reactor.
class AnalyzeReactor final : public Reactor,
                             public AnalysisQueue::Job,
                             public std::enable_shared_from_this<AnalyzeReactor> {
 public:
  static void Start(Call& call, const Backend& backend, AnalysisQueue& queue);

  void OnQueued(size_t jobs_ahead) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const override { return cancelled_; }

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AnalyzeReactor(Call& call, const Backend& backend, AnalysisQueue& queue)
      : call_(call), backend_(backend), queue_(queue), writer_(call) {}

  // Reads the request and enqueues the analysis.
  void Enqueue() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadRequest();
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
  std::atomic<bool> cancelled_ = false;
  // Used by the queue's thread alone.
  absl::Time last_progress_ = absl::InfinitePast();

  Mutex mutex_;
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
