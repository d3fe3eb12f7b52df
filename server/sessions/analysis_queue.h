// Who analyses when: analyses share one processor, since serving needs the others.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// A few analyses are under way at a time and take turns: one computes while the others stand still.
// So a short one is done soon although a long one began before it, a long one goes on, and no
// estimate of how long either takes is needed (docs/adr/0040-cancellation.md). A model has one
// analysis under way; the last of them is a small one. The others wait in the order of their
// submission. Thread contract: safe for any number of threads.
class AnalysisQueue {
 public:
  // The methods are called on a thread of the queue, unless they say otherwise.
  class Job {
   public:
    virtual ~Job() = default;
    // The job waits to begin, after `jobs_ahead` - 1 others. Called again when that
    // number changes; the first time on the thread that submits the job.
    virtual void OnQueued(size_t jobs_ahead) = 0;
    // Analyses. Calls AwaitTurn several times a second.
    virtual void Run() = 0;
    // Whether the job should not run, since its client is gone. Any thread may call it.
    virtual bool cancelled() const = 0;
    // The model's full name. Any thread may call it.
    virtual const std::string& model() const = 0;
    // Whether the analysis takes little memory. Any thread may call it.
    virtual bool small() const = 0;
  };

  using Clock = std::chrono::steady_clock;

  // Analyses under way at a time.
  static constexpr size_t kMaxUnderWay = 4;
  // How long one computes while others wait for their turn.
  static constexpr std::chrono::milliseconds kTurn{100};

  struct Options {
    // The most jobs that are under way or wait.
    size_t max_jobs = 64;
    // The longest that one may be under way: its Run sees to it.
    absl::Duration max_time = absl::Minutes(15);
    // Measures turns; replaceable in tests.
    std::function<Clock::time_point()> now = Clock::now;
  };

  explicit AnalysisQueue(const Options& options);
  // Waits for the running jobs, which should have been cancelled, and drops the others.
  ~AnalysisQueue();

  // Returns false, and drops the job, if there are too many.
  bool Submit(std::shared_ptr<Job> job) ABSL_LOCKS_EXCLUDED(mutex_);
  const Options& options() const { return options_; }
  // Waits until the job, which is under way, may compute on; returns how long. Returns at once if
  // the job is cancelled.
  std::chrono::nanoseconds AwaitTurn(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Waiting = std::deque<std::shared_ptr<Job>>;

  void RunAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // The waiting job that is next; end() if none may begin.
  Waiting::const_iterator FindNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves it to under_way_. There must be one.
  std::shared_ptr<Job> Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the turn to the job after the one that has it.
  void PassTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotifyPositions() ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Mutex mutex_;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  // The first has the turn, since turn_began_.
  std::deque<const Job*> under_way_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point turn_began_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since they use all the others.
  std::vector<std::thread> threads_;
};

}  // namespace perceptrond
