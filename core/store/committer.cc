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

// Where a step comes after so many examples, their number decides what is learned.
bool MayDefer(const Model& model) { return model.settings().learner.mini_batch == 0; }

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

bool Committer::Defer(const std::shared_ptr<Model>& model) {
  if (!Defers() || !MayDefer(*model)) return false;
  // While the journal does not answer, counts do not wait for it without an end.
  const int64_t since = writing_since_nanos_.load(std::memory_order_relaxed);
  if (since != 0 &&
      absl::Nanoseconds(absl::GetCurrentTimeNanos() - since) > options_.counters_delay)
    return false;
  Ledger& ledger = model->ledger();
  // What a sample takes is looked at by the thread.
  if (ledger.torn() || ledger.stored_examples().samples() || ledger.has_uncommitted()) return false;
  DeferCounts(model);
  return true;
}

void Committer::DeferCounts(const std::shared_ptr<Model>& model) {
  std::atomic<bool>& is_deferred = model->core().counts_deferred;
  if (is_deferred.load()) return;
  const absl::Time due = absl::Now() + options_.counters_delay;
  MutexLock lock(&mutex_);
  if (is_deferred.load()) return;
  deferred_.push_back({due, model});
  is_deferred.store(true);
}

void Committer::WriteDeferred() {
  MutexLock lock(&mutex_);
  for (Deferred& deferred : deferred_) deferred.due = absl::InfinitePast();
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

void Committer::Submit(std::shared_ptr<Model> model, Done done, bool whole) {
  auto waiter = std::make_shared<Callback>(std::move(done));
  const absl::Time now = absl::Now();
  MutexLock lock(&mutex_);
  due_ = std::min(due_, now);
  queue_.push_back({now, std::move(model), std::move(waiter), 1, whole});
}

absl::Duration Committer::oldest_wait() const {
  MutexLock lock(&mutex_);
  const int64_t written_since = writing_since_nanos_.load(std::memory_order_relaxed);
  const absl::Time oldest =
      std::min({writing_since_, queue_.empty() ? absl::InfiniteFuture() : queue_.front().time,
                written_since == 0 ? absl::InfiniteFuture() : absl::FromUnixNanos(written_since)});
  // Zero also if the clock was set back.
  return std::max(absl::Now() - oldest, absl::ZeroDuration());
}

absl::Status Committer::Commit(std::span<const std::shared_ptr<Model>> models) {
  if (models.empty()) return absl::OkStatus();
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
    for (const std::shared_ptr<Model>& model : models.first(models.size() - 1))
      queue_.push_back({now, model, nullptr, 1, true});
    queue_.push_back({now, models.back(), std::move(waiter), 1, true});
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
  std::vector<std::shared_ptr<Model>> due;
  bool unsynced = false;
  absl::Time last_sync = absl::Now();
  while (true) {
    bool stop = false;
    {
      MutexLock lock(&mutex_);
      writing_since_ = absl::InfiniteFuture();
      AwaitDue(unsynced ? last_sync + options_.interval : absl::InfiniteFuture());
      submissions.swap(queue_);
      due_ = absl::InfiniteFuture();
      if (!submissions.empty()) writing_since_ = submissions.front().time;
      stop = stopping_ && submissions.empty();
      due = TakeDue(stop);
    }
    if (!submissions.empty() || !due.empty()) {
      CommitAll(submissions, due);
      submissions.clear();
      due.clear();
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
  const auto next = [this, deadline]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min({due_, deadline, FirstDeferred()});
  };
  const auto sooner = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || next() < wakes_at_;
  };
  // After a batch another one is likely: the thread sleeps as long as that may wait, so that it
  // need not be woken to learn when it is due.
  absl::Time expected = absl::Now() + kLongDelay;
  for (absl::Time now = absl::Now(); !stopping_ && now < next(); now = absl::Now()) {
    wakes_at_ = std::min(next(), expected);
    // Whatever becomes of the clock meanwhile, nothing waits longer than it may.
    const absl::Duration most = !queue_.empty()      ? kLongDelay
                                : !deferred_.empty() ? options_.counters_delay
                                                     : absl::InfiniteDuration();
    if (mutex_.AwaitWithTimeout(absl::Condition(&sooner), std::min(wakes_at_ - now, most)))
      continue;
    if (!queue_.empty()) return;
    expected = absl::InfiniteFuture();
  }
}

absl::Time Committer::FirstDeferred() const {
  if (deferred_.empty()) return absl::InfiniteFuture();
  const absl::Time due = deferred_.front().due;
  // If the clock was set back, now.
  return due > absl::Now() + options_.counters_delay ? absl::InfinitePast() : due;
}

std::vector<std::shared_ptr<Model>> Committer::TakeDue(bool all) {
  std::vector<std::shared_ptr<Model>> due;
  const absl::Time now = absl::Now();
  for (; !deferred_.empty() && (all || FirstDeferred() <= now); deferred_.pop_front()) {
    due.push_back(std::move(deferred_.front().model));
    // Before its counts are taken: what comes later is deferred anew.
    due.back()->core().counts_deferred.store(false);
  }
  return due;
}

void Committer::CommitAll(const std::vector<Submission>& submissions,
                          const std::vector<std::shared_ptr<Model>>& due) {
  Results results;
  Batch batch;
  absl::flat_hash_set<std::shared_ptr<Model>> sampled;
  const auto add = [&](const std::shared_ptr<Model>& model) {
    const auto [result, is_new] = results.try_emplace(model.get(), model->closed());
    if (!is_new || (!result->second.ok() && !model->ledger().torn())) return;
    if (Add(model, batch)) return;
    result->second = OutOfMemory();
    on_failure_(*model, OutOfMemory());
  };
  for (const std::shared_ptr<Model>& model : due)
    if (model->ledger().has_moved()) add(model);
  for (const Submission& submission : submissions) {
    const std::shared_ptr<Model>& model = submission.model;
    Ledger& ledger = model->ledger();
    const bool defers = !submission.whole && Defers() && MayDefer(*model);
    if ((defers ? ledger.must_be_written() : ledger.has_moved()) || ledger.torn() ||
        !model->closed().ok()) {
      add(model);
    } else if (defers) {
      DeferCounts(model);
      // What a sample takes.
      if (ledger.stored_examples().samples()) sampled.insert(model);
    }
  }
  if (!batch.entries.empty()) Write(batch, results);
  for (const std::shared_ptr<Model>& model : sampled) on_commit_(model);
  // What was not written has nothing that cannot wait.
  for (const Submission& submission : submissions) {
    if (submission.waiter != nullptr)
      submission.waiter->Committed(submission.count, results[submission.model.get()]);
  }
}

bool Committer::Add(const std::shared_ptr<Model>& model, Batch& batch) {
  if (model->ledger().torn()) return false;
  Ledger::Pending pending;
  const absl::Status taken = WithinMemory([&] {
    pending = model->ledger().TakePending();
    batch.entries.push_back(std::move(pending.entry));
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
  batch.changes.push_back(pending.changes);
  batch.grown.push_back(pending.has_grown);
  batch.models.push_back(model);
  return true;
}

void Committer::Write(Batch& batch, Results& results) {
  const absl::Time begin = absl::Now();
  writing_since_nanos_.store(absl::ToUnixNanos(begin), std::memory_order_relaxed);
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
  writing_since_nanos_.store(0, std::memory_order_relaxed);
  is_failing_.store(!written.ok(), std::memory_order_relaxed);
  busy_nanos_.fetch_add(absl::ToInt64Nanoseconds(absl::Now() - begin), std::memory_order_relaxed);
  (written.ok() ? commits_ : failures_).fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < batch.models.size(); ++i) {
    Model& model = *batch.models[i];
    if (i >= outcome.written) {
      results[&model] = JournalError(written, "");
      on_failure_(model, results[&model]);
      continue;
    }
    model.ledger().OnCommitted(batch.changes[i]);
    if (!batch.grown[i]) continue;
    uint64_t bytes = 0;
    for (const storage::UpdateRecord& record : batch.entries[i].records)
      bytes += record.ByteSizeLong();
    Guarded<JournalUse>::Writer(model.core().journal_use)->bytes += bytes;
    on_commit_(batch.models[i]);
  }
}

}  // namespace perceptrond
