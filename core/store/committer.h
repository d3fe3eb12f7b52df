// Makes what was learned durable, for many models and streams at once (group commit): one thread
// takes the pending updates of every model that was submitted, writes them in one batch with at
// most one fsync, and notifies everybody who waits. All models are of one partition of the journal.
// Counts of correct rows may be deferred.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/model/model.h"
#include "core/sync/mutex.h"

namespace perceptrond {

enum class Durability : uint8_t {
  // Updates are on disk before they are acknowledged.
  kSync,
  // Updates reach the disk within a stated time.
  kInterval,
  // Updates reach the disk when the operating system writes them.
  kNone,
};

// Waits for submissions. Called on the committer's thread, which must not be blocked.
class CommitWaiter {
 public:
  virtual ~CommitWaiter() = default;
  // The oldest `submissions` of this waiter that had no answer are durable, or could not be written
  // for the reason in `status`.
  virtual void Committed(size_t submissions, const absl::Status& status) = 0;
};

// Thread contract: safe for any number of threads.
class Committer {
 public:
  // How long a submission may wait for others, to be written with them: a batch costs some 30 us of
  // a processor, whatever it holds. For a caller that does not wait for each answer.
  static constexpr absl::Duration kShortDelay = absl::Microseconds(200);
  // For one that is itself waited for: it has more to submit.
  static constexpr absl::Duration kLongDelay = absl::Milliseconds(1);

  struct Options {
    Durability durability = Durability::kSync;
    // For kInterval.
    absl::Duration interval = absl::Milliseconds(100);
    // Above zero: counters and positions that correct rows alone have moved are written with the model's next update,
    // or this much later, so that a stream without updates writes next to nothing. A crash may lose them. A producer
    // that resumes says what was acknowledged to it. From a failed write until the next one that works nothing is deferred.
    absl::Duration counters_delay = absl::ZeroDuration();
  };
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // `on_failure` is called for each model whose pending updates could not be written, or whose
  // ledger is torn, before their waiters are notified: the model's memory is not what the journal
  // has. `on_commit` is called for
  // each model whose entry was written and whose memory may have grown (Ledger::TakePending).
  Committer(Journal& journal, const Options& options,
            std::function<void(Model&, const absl::Status&)> on_failure,
            std::function<void(const std::shared_ptr<Model>&)> on_commit);
  // Notifies every waiter first.
  ~Committer();

  // True if the model's counts may be deferred, and it has learned nothing but correct rows since its last commit: their
  // counts are written within counters_delay, and the caller may answer at once. False: Submit. Takes no lock of this,
  // but for a model's first row since they were written.
  bool Defer(const std::shared_ptr<Model>& model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has what is deferred written soon, so that models can leave memory, which it keeps there.
  void WriteDeferred() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notifies the waiter once everything that the model learned before this call is durable, but what Defer defers, or why
  // it is not. Submissions are answered in their order. Begins to write after at most `delay`, or
  // when the batch before is written, if that is later. delay: from 0 to kLongDelay.
  void Submit(std::shared_ptr<Model> model, std::shared_ptr<CommitWaiter> waiter,
              absl::Duration delay) ABSL_LOCKS_EXCLUDED(mutex_);
  // One submission without a delay, answered by `done`. `whole`: counts and positions of correct rows are durable then,
  // too.
  void Submit(std::shared_ptr<Model> model, Done done, bool whole = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes what the models have learned, counters too, and waits for it, and for what is written before. The last
  // one's status.
  absl::Status Commit(std::span<const std::shared_ptr<Model>> models) ABSL_LOCKS_EXCLUDED(mutex_);

  // Batches written, and batches that could not be.
  uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }
  // Time spent writing the batches that commits() and failures() count.
  absl::Duration busy() const {
    return absl::Nanoseconds(busy_nanos_.load(std::memory_order_relaxed));
  }
  // How long the oldest submission without an answer, or what is being written, has waited; zero if there is none.
  absl::Duration oldest_wait() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Submission {
    absl::Time time;
    std::shared_ptr<Model> model;
    // Null: nobody waits.
    std::shared_ptr<CommitWaiter> waiter;
    // How many of this waiter in a row it stands for.
    size_t count = 1;
    // Counts and positions of correct rows are not deferred.
    bool whole = false;
  };
  // A model whose counters are deferred.
  struct Deferred {
    absl::Time due;
    std::shared_ptr<Model> model;
  };

  bool Defers() const {
    return options_.counters_delay > absl::ZeroDuration() &&
           !is_failing_.load(std::memory_order_relaxed);
  }
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void DeferCounts(const std::shared_ptr<Model>& model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until something is to be written, `deadline`, or the end.
  void AwaitDue(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CommitAll(const std::vector<Submission>& submissions,
                 const std::vector<std::shared_ptr<Model>>& due);
  // When the first of deferred_ is due; InfiniteFuture if there is none.
  absl::Time FirstDeferred() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the models whose counters have been deferred for long enough. `all`: every one.
  std::vector<std::shared_ptr<Model>> TakeDue(bool all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Results = absl::flat_hash_map<Model*, absl::Status>;
  // What is written at once: models, and an entry of each.
  struct Batch {
    std::vector<std::shared_ptr<Model>> models;
    std::vector<JournalEntry> entries;
    // Ledger::Pending's.
    std::vector<uint64_t> changes;
    std::vector<char> grown;
    // Some entry has updates or learned predictions, which a commit syncs with Durability::kSync.
    bool syncs = false;
  };
  // Takes the model's pending updates. False if its ledger is torn, or is torn by this.
  bool Add(const std::shared_ptr<Model>& model, Batch& batch);
  void Write(Batch& batch, Results& results);

  Journal& journal_;
  const Options options_;
  const std::function<void(Model&, const absl::Status&)> on_failure_;
  const std::function<void(const std::shared_ptr<Model>&)> on_commit_;
  std::atomic<uint64_t> commits_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  std::atomic<int64_t> busy_nanos_ = 0;
  // When the batch that is being written was begun, in Unix time; 0: none is.
  std::atomic<int64_t> writing_since_nanos_ = 0;
  // The last write failed.
  std::atomic<bool> is_failing_ = false;

  mutable Mutex mutex_;
  // Each model once (ModelCore::counts_deferred), by the time when it is due.
  std::deque<Deferred> deferred_ ABSL_GUARDED_BY(mutex_);
  // By time.
  std::vector<Submission> queue_ ABSL_GUARDED_BY(mutex_);
  // When queue_ is to be written; InfiniteFuture if it is empty.
  absl::Time due_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // Until when the thread sleeps, unless something is due before.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Time of the oldest submission that is being written; InfiniteFuture if none is.
  absl::Time writing_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
