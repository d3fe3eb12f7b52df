// Takes snapshots of models whose journal has grown, beside serving, so that replay and disk stay
// bounded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/journal/journal.h"
#include "core/memory/memory_budget.h"
#include "core/store/committers.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Snapshotter {
 public:
  // Called on the snapshotter's thread for a model that no snapshot can be taken of; again only
  // after one was taken.
  using FailureCallback = std::function<void(const std::string& model, const absl::Status& why)>;

  // `max_history_bytes`: of the records before a snapshot that a model with kept snapshots keeps.
  Snapshotter(Journal& journal, Committers& committer, MemoryBudget& memory,
              uint64_t max_history_bytes, FailureCallback on_failure);
  ~Snapshotter();
  // Finishes the snapshot in progress and drops the others: they only shorten replay. Later
  // requests are ignored.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests a snapshot that has what happened before the call: one that waits will do, one in
  // progress will not.
  void Request(std::shared_ptr<Model> model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requests a snapshot, unless one waits or is in progress.
  void RequestAny(std::shared_ptr<Model> model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no snapshot of that model is requested or in progress.
  void Await(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t snapshots() const { return snapshots_.load(std::memory_order_relaxed); }
  // Snapshots that could not be written. The journal keeps the records that they would have
  // covered.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  void Add(std::shared_ptr<Model> model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors of the journal; OutOfMemory.
  absl::Status Take(const std::shared_ptr<Model>& model);
  // Sets which records before the snapshot are still held: those after the oldest kept snapshot, but the
  // oldest of them that are too many. `bytes`: of those since the snapshot before.
  absl::Status SetHistory(const Model& model, uint64_t bytes, storage::Snapshot& snapshot);
  void OnFailure(const Model& model, const absl::Status& why);

  Journal& journal_;
  Committers& committer_;
  MemoryBudget& memory_;
  const uint64_t max_history_bytes_;
  const FailureCallback on_failure_;
  std::atomic<uint64_t> snapshots_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  // Models whose last snapshot failed. Of the thread alone.
  absl::flat_hash_set<uint64_t> failing_;
  Mutex mutex_;
  std::vector<std::shared_ptr<Model>> queue_ ABSL_GUARDED_BY(mutex_);
  // A snapshot is being taken of it; null: of none.
  std::shared_ptr<Model> in_progress_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perceptrond
