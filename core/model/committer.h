// Makes what was learned durable, many models and streams at once: one thread cuts the books of
// every model that waits, writes all cuts in one batch with at most one fsync, and answers
// everybody who waited (group commit).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

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
  // Updates reach the disk when the operating system likes.
  kNone,
};

// Whoever waits for what it has submitted. Called on the committer's thread, which must not be
// waited for.
class CommitWaiter {
 public:
  virtual ~CommitWaiter() = default;
  // The oldest `submissions` without an answer are durable, or are not and why.
  virtual void Committed(size_t submissions, const absl::Status& status) = 0;
};

// Thread contract: safe for any number of threads.
class Committer {
 public:
  // When a submission is to be written.
  enum class FlushPolicy : uint8_t {
    kImmediate,
    // Within kPatience, so that more of a caller that does not wait for each answer are written
    // together.
    kDelayed,
  };
  // A batch costs some 10 us of a core, whatever it holds (docs/performance.md).
  static constexpr absl::Duration kCommitDelay = absl::Microseconds(200);

  struct Options {
    Durability durability = Durability::kSync;
    // For kInterval.
    absl::Duration interval = absl::Milliseconds(100);
  };
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // `on_failure` is called, before those who wait are answered, for each model whose cut could not
  // be written: its memory is ahead of the journal. `on_commit` is called for each model whose cut
  // was.
  Committer(Journal& journal, const Options& options,
            std::function<void(Model&, const absl::Status&)> on_failure,
            std::function<void(const std::shared_ptr<Model>&)> on_commit);
  // Answers everybody first.
  ~Committer();

  // Tells the waiter once everything the model has learned up to this call is durable, or why it is
  // not. In order: what is submitted first is answered first.
  void Submit(std::shared_ptr<Model> model, std::shared_ptr<CommitWaiter> waiter,
              FlushPolicy flush_policy) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, at once, for one submission.
  void Submit(std::shared_ptr<Model> model, Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits and waits.
  absl::Status Commit(std::shared_ptr<Model> model) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }
  // Time spent writing the batches that commits() and failures() count.
  absl::Duration busy() const {
    return absl::Nanoseconds(busy_nanos_.load(std::memory_order_relaxed));
  }
  // How long the oldest submission without an answer has been waiting for it; zero without one.
  absl::Duration oldest_wait() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    absl::Time since;
    std::shared_ptr<Model> model;
    std::shared_ptr<CommitWaiter> waiter;
    size_t submissions = 1;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets more come, if nobody is in a hurry.
  void AwaitMoreSubmissions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CommitAll(std::vector<Waiting>& waiting);

  Journal& journal_;
  const Options options_;
  const std::function<void(Model&, const absl::Status&)> on_failure_;
  const std::function<void(const std::shared_ptr<Model>&)> on_commit_;
  std::atomic<uint64_t> commits_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  std::atomic<int64_t> busy_nanos_ = 0;

  mutable Mutex mutex_;
  // In the order of their times. What a waiter submits in a row is one.
  std::vector<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  // One of them is to be written at once.
  bool flush_now_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the oldest of those that are being answered; InfiniteFuture if none is.
  absl::Time answering_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
