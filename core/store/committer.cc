#include "core/store/committer.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/sync/thread_name.h"
#include "core/sync/wait_timer.h"

namespace perceptrond {
namespace {

class Callback final : public CommitWaiter {
 public:
  explicit Callback(Committer::Done done) : done_(std::move(done)) {}
  void Committed(size_t /*submissions*/, const absl::Status& status) override { done_(status); }

 private:
  Committer::Done done_;
};

}  // namespace

Committer::Committer(Journal& journal, const Options& options,
                     std::function<void(Model&, const absl::Status&)> on_failure,
                     std::function<void(const std::shared_ptr<Model>&)> on_commit)
    : journal_(journal),
      options_(options),
      on_failure_(std::move(on_failure)),
      on_commit_(std::move(on_commit)),
      thread_([this] { Run(); }) {}

Committer::~Committer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Committer::Submit(std::shared_ptr<Model> model, std::shared_ptr<CommitWaiter> waiter,
                       absl::Duration delay) {
  const absl::Time now = absl::Now();
  MutexLock lock(&mutex_);
  due_ = std::min(due_, now + delay);
  if (!queue_.empty() && queue_.back().waiter == waiter && queue_.back().model == model) {
    ++queue_.back().count;
    return;
  }
  queue_.push_back({now, std::move(model), std::move(waiter)});
}

void Committer::Submit(std::shared_ptr<Model> model, Done done) {
  Submit(std::move(model), std::make_shared<Callback>(std::move(done)), absl::ZeroDuration());
}

absl::Duration Committer::oldest_wait() const {
  MutexLock lock(&mutex_);
  const absl::Time oldest =
      queue_.empty() ? writing_since_ : std::min(writing_since_, queue_.front().time);
  // Zero also if the clock was set back.
  return std::max(absl::Now() - oldest, absl::ZeroDuration());
}

absl::Status Committer::Commit(std::shared_ptr<Model> model) {
  Mutex mutex;
  std::optional<absl::Status> result;
  auto waiter = std::make_shared<Callback>([&](absl::Status status) {
    MutexLock lock(&mutex);
    result = std::move(status);
  });
  {
    const absl::Time now = absl::Now();
    MutexLock lock(&mutex_);
    due_ = std::min(due_, now);
    queue_.push_back({now, std::move(model), std::move(waiter), 1, true});
  }
  const auto answered = [&result] { return result.has_value(); };
  const WaitTimer timer(Wait::kCommit);
  MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&answered));
  return *std::move(result);
}

void Committer::Run() {
  NameThisThread("committer");
  std::vector<Submission> submissions;
  bool unsynced = false;
  absl::Time last_sync = absl::Now();
  while (true) {
    bool stop = false;
    {
      MutexLock lock(&mutex_);
      writing_since_ = absl::InfiniteFuture();
      AwaitDue(std::min(unsynced ? last_sync + options_.interval : absl::InfiniteFuture(),
                        waiting_.empty() ? absl::InfiniteFuture() : waiting_.front().due));
      submissions.swap(queue_);
      due_ = absl::InfiniteFuture();
      if (!submissions.empty()) writing_since_ = submissions.front().time;
      stop = stopping_ && submissions.empty();
    }
    const bool counters_are_due = !waiting_.empty() && waiting_.front().due <= absl::Now();
    if (!submissions.empty() || counters_are_due || stop) {
      CommitAll(submissions, stop);
      submissions.clear();
      unsynced = options_.durability == Durability::kInterval;
    }
    if (unsynced && (stop || absl::Now() >= last_sync + options_.interval)) {
      if (!journal_.Sync().ok()) failures_.fetch_add(1, std::memory_order_relaxed);
      last_sync = absl::Now();
      unsynced = false;
    }
    if (stop) return;
  }
}

void Committer::AwaitDue(absl::Time deadline) {
  const auto sooner = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || due_ < wakes_at_;
  };
  // After a batch another one is likely: the thread sleeps as long as that may wait, so that it
  // need not be woken to learn when it is due.
  absl::Time expected = absl::Now() + kLongDelay;
  for (absl::Time now = absl::Now(); !stopping_ && now < std::min(due_, deadline);
       now = absl::Now()) {
    wakes_at_ = std::min({due_, deadline, expected});
    // Whatever becomes of the clock meanwhile, what is in the queue waits no longer.
    const absl::Duration most = queue_.empty() ? absl::InfiniteDuration() : kLongDelay;
    if (mutex_.AwaitWithTimeout(absl::Condition(&sooner), std::min(wakes_at_ - now, most)))
      continue;
    if (!queue_.empty()) return;
    expected = absl::InfiniteFuture();
  }
}

std::vector<std::shared_ptr<Model>> Committer::Choose(const std::vector<Submission>& submissions,
                                                      bool all) {
  std::vector<std::shared_ptr<Model>> chosen;
  std::vector<std::shared_ptr<Model>> others;
  absl::flat_hash_set<Model*> are_chosen;
  const auto choose = [&](const std::shared_ptr<Model>& model) {
    if (are_chosen.insert(model.get()).second) chosen.push_back(model);
  };
  for (const Submission& submission : submissions) {
    const std::shared_ptr<Model>& model = submission.model;
    if (model == nullptr) {
      all = true;
    } else if (submission.whole || !CanWait(*model)) {
      choose(model);
    } else {
      others.push_back(model);
    }
  }
  const absl::Time now = absl::Now();
  for (const Waiting& waiting : waiting_) {
    if (all || waiting.due <= now) choose(waiting.model);
  }
  for (const std::shared_ptr<Model>& model : others) {
    if (all) {
      choose(model);
    } else if (!are_chosen.contains(model.get()) && are_waiting_.insert(model.get()).second) {
      waiting_.push_back({now + options_.counters_delay, model});
    }
  }
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    return are_chosen.contains(waiting.model.get()) && are_waiting_.erase(waiting.model.get()) > 0;
  });
  return chosen;
}

bool Committer::CanWait(Model& model) const {
  return options_.counters_delay > absl::ZeroDuration() && !model.ledger().must_be_written() &&
         model.closed().ok();
}

void Committer::CommitAll(const std::vector<Submission>& submissions, bool all) {
  Results results;
  Batch batch;
  for (const std::shared_ptr<Model>& model : Choose(submissions, all)) {
    absl::Status& result = results[model.get()];
    result = model->closed();
    if (!result.ok() && !model->ledger().torn()) continue;
    if (Add(model, batch)) continue;
    result = OutOfMemory();
    on_failure_(*model, OutOfMemory());
  }
  if (!batch.entries.empty()) Write(batch, results);
  // One that was not chosen has nothing to write that cannot wait.
  for (const Submission& submission : submissions)
    submission.waiter->Committed(submission.count, results[submission.model.get()]);
}

bool Committer::Add(const std::shared_ptr<Model>& model, Batch& batch) {
  if (model->ledger().torn()) return false;
  bool has_grown = false;
  const absl::Status taken = WithinMemory([&] {
    batch.entries.push_back(model->ledger().TakePending(&has_grown));
    return absl::OkStatus();
  });
  // Looked at after what was taken, which is then discarded.
  if (!taken.ok() || model->ledger().torn()) {
    if (taken.ok()) batch.entries.pop_back();
    return false;
  }
  batch.entries.back().model_id = model->id();
  // The id of a prediction that was acknowledged must not come back; counts may.
  const JournalEntry& entry = batch.entries.back();
  batch.syncs |= !entry.records.empty() || !entry.learned_predictions.empty();
  batch.grown.push_back(has_grown);
  batch.models.push_back(model);
  return true;
}

void Committer::Write(Batch& batch, Results& results) {
  const absl::Time begin = absl::Now();
  CommitOutcome outcome;
  absl::Status written = WithinMemory([&] {
    const bool sync = batch.syncs && options_.durability == Durability::kSync;
    absl::StatusOr<CommitOutcome> committed = journal_.Commit(batch.entries, {sync, std::nullopt});
    if (committed.ok()) outcome = *committed;
    return committed.status();
  });
  if (written.ok() && outcome.written < batch.entries.size()) {
    written = outcome.stale ? WrittenByAnother()
                            : absl::UnavailableError("the journal takes no more now");
  }
  busy_nanos_.fetch_add(absl::ToInt64Nanoseconds(absl::Now() - begin), std::memory_order_relaxed);
  (written.ok() ? commits_ : failures_).fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < batch.models.size(); ++i) {
    Model& model = *batch.models[i];
    if (i >= outcome.written) {
      results[&model] = JournalError(written, "");
      on_failure_(model, results[&model]);
      continue;
    }
    if (!batch.grown[i]) continue;
    uint64_t bytes = 0;
    for (const storage::UpdateRecord& record : batch.entries[i].records)
      bytes += record.ByteSizeLong();
    Guarded<JournalUse>::Writer(model.core().journal_use)->bytes += bytes;
    on_commit_(batch.models[i]);
  }
}

}  // namespace perceptrond
