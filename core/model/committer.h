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

// Thread contract: safe for any number of threads. Callbacks run on the committer's thread and must
// not wait for it.
class Committer {
 public:
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

  // Calls `done` once everything the model has learned up to this call is durable, or with why it
  // is not. In order: what is submitted first is answered first.
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
    Done done;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void CommitAll(std::vector<Waiting>& waiting);

  Journal& journal_;
  const Options options_;
  const std::function<void(Model&, const absl::Status&)> on_failure_;
  const std::function<void(const std::shared_ptr<Model>&)> on_commit_;
  std::atomic<uint64_t> commits_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  std::atomic<int64_t> busy_nanos_ = 0;

  mutable Mutex mutex_;
  // In the order of their times.
  std::vector<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  // Of the oldest of those that are being answered; InfiniteFuture if none is.
  absl::Time answering_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
