// Analyses, one at a time in the order they came: each may take a core for seconds, and serving
// needs the others.
#pragma once

#include <deque>
#include <memory>
#include <thread>

#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class AnalysisQueue {
 public:
  // Methods are called on the queue's thread.
  class Job {
   public:
    virtual ~Job() = default;
    // So many come first.
    virtual void Wait(size_t before) = 0;
    virtual void Run() = 0;
    // Nobody waits for it any more: it is not run. Any thread may ask.
    virtual bool cancelled() const = 0;
  };

  AnalysisQueue() : thread_([this] { RunAll(); }) {}
  // Waits for the job under way, which somebody has cancelled; the others are dropped.
  ~AnalysisQueue();

  void Submit(std::shared_ptr<Job> job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void TellPlaces() ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  // The first is under way.
  std::deque<std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
