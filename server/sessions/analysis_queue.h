// Runs analyses one at a time, in the order of their submission: each may use a core for seconds,
// and serving needs the others.
#pragma once

#include <deque>
#include <memory>
#include <thread>

#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
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

}  // namespace perceptrond
