#include "server/sessions/analysis_queue.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// How often a job that waits for its turn looks whether it was cancelled.
constexpr absl::Duration kCancelInterval = absl::Milliseconds(20);

}  // namespace

AnalysisQueue::AnalysisQueue(const Options& options) : options_(options) {
  for (size_t i = 0; i < kMaxUnderWay; ++i) {
    threads_.emplace_back([this] {
      NameThisThread("analysis");
      RunAll();
    });
  }
}

AnalysisQueue::~AnalysisQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool AnalysisQueue::Submit(std::shared_ptr<Job> job) {
  size_t jobs_ahead = 0;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    if (waiting_.size() + under_way_.size() >= options_.max_jobs) return false;
    waiting_.push_back(job);
    jobs_ahead = MayBegin(*job) ? 0 : waiting_.size();
  }
  if (jobs_ahead > 0) job->OnQueued(jobs_ahead);
  return true;
}

bool AnalysisQueue::MayBegin(const Job& job) const {
  const auto large = std::count_if(under_way_.begin(), under_way_.end(),
                                   [](const Job* other) { return !other->small(); });
  const bool has_room = under_way_.size() < kMaxUnderWay &&
                        (job.small() || static_cast<size_t>(large) + 1 < kMaxUnderWay);
  return has_room && std::none_of(under_way_.begin(), under_way_.end(),
                                  [&](const Job* other) { return other->model() == job.model(); });
}

AnalysisQueue::Waiting::const_iterator AnalysisQueue::FindNext() const {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [this](const std::shared_ptr<Job>& job)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return MayBegin(*job); });
}

std::shared_ptr<AnalysisQueue::Job> AnalysisQueue::Take() {
  const auto next = FindNext();
  std::shared_ptr<Job> job = *next;
  waiting_.erase(next);
  if (under_way_.empty()) turn_began_ = options_.now();
  under_way_.push_back(job.get());
  return job;
}

void AnalysisQueue::RunAll() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || FindNext() != waiting_.end();
      };
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return waiting_.clear();
      job = Take();
    }
    NotifyPositions();
    AwaitTurn(*job);
    if (!job->cancelled()) job->Run();
    End(*job);
  }
}

std::chrono::nanoseconds AnalysisQueue::AwaitTurn(const Job& job) {
  const Clock::time_point began = options_.now();
  MutexLock lock(&mutex_);
  if (under_way_.front() == &job) {
    if (under_way_.size() == 1 || began - turn_began_ < kTurn) return {};
    PassTurn();
  }
  const auto has_turn = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return under_way_.front() == &job;
  };
  while (!job.cancelled() && !mutex_.AwaitWithTimeout(absl::Condition(&has_turn), kCancelInterval))
    continue;
  return options_.now() - began;
}

void AnalysisQueue::PassTurn() {
  under_way_.push_back(under_way_.front());
  under_way_.pop_front();
  turn_began_ = options_.now();
}

void AnalysisQueue::End(const Job& job) {
  MutexLock lock(&mutex_);
  if (under_way_.front() == &job) turn_began_ = options_.now();
  std::erase(under_way_, &job);
}

void AnalysisQueue::DropCancelled() {
  std::erase_if(waiting_, [](const std::shared_ptr<Job>& job) { return job->cancelled(); });
}

void AnalysisQueue::NotifyPositions() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs.assign(waiting_.begin(), waiting_.end());
  }
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i]->OnQueued(i + 1);
}

}  // namespace perceptrond
