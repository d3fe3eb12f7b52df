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
  size_t before = 0;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    before = jobs_.size();
    jobs_.push_back(job);
  }
  if (before > 0) job->Wait(before);
}

void AnalysisQueue::DropCancelled() {
  if (jobs_.empty()) return;
  // The first belongs to the thread.
  jobs_.erase(std::remove_if(jobs_.begin() + 1, jobs_.end(),
                             [](const std::shared_ptr<Job>& job) { return job->cancelled(); }),
              jobs_.end());
}

void AnalysisQueue::TellPlaces() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs.assign(jobs_.begin(), jobs_.end());
  }
  for (size_t i = 1; i < jobs.size(); ++i) jobs[i]->Wait(i);
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
    TellPlaces();
    if (!job->cancelled()) job->Run();
    MutexLock lock(&mutex_);
    jobs_.pop_front();
  }
}

}  // namespace perceptrond
