#include "server/sessions/analysis_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace perceptrond {

AnalysisQueue::~AnalysisQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AnalysisQueue::Submit(std::shared_ptr<Job> job) {
  size_t jobs_ahead = 0;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs_ahead = jobs_.size();
    jobs_.push_back(job);
  }
  if (jobs_ahead > 0) job->OnQueued(jobs_ahead);
}

void AnalysisQueue::DropCancelled() {
  if (jobs_.empty()) return;
  // The queue's thread removes the first itself.
  jobs_.erase(std::remove_if(jobs_.begin() + 1, jobs_.end(),
                             [](const std::shared_ptr<Job>& job) { return job->cancelled(); }),
              jobs_.end());
}

void AnalysisQueue::NotifyPositions() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs.assign(jobs_.begin(), jobs_.end());
  }
  for (size_t i = 1; i < jobs.size(); ++i) jobs[i]->OnQueued(i);
}

void AnalysisQueue::RunAll() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !jobs_.empty();
  };
  while (true) {
    std::shared_ptr<Job> job;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return jobs_.clear();
      job = jobs_.front();
    }
    NotifyPositions();
    if (!job->cancelled()) job->Run();
    MutexLock lock(&mutex_);
    jobs_.pop_front();
  }
}

}  // namespace perceptrond
