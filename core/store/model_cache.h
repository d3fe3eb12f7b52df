// The models in memory, within a budget: the least recently used leave first.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/memory/memory_budget.h"
#include "core/model/model.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class ModelCache {
 public:
  // Loads the model of that name. Called without a lock, by one thread at a time for each name, in
  // a CancellationScope of its own.
  using Loader = std::function<absl::StatusOr<std::shared_ptr<Model>>(absl::string_view name)>;

  struct Stats {
    uint64_t loads = 0;
    uint64_t evictions = 0;
    uint64_t models = 0;
    uint64_t memory_bytes = 0;
  };

  // Models may take what the budget gives them, all together at most max_bytes. Those that
  // are held stay, and another waits until they leave it room. A model that alone takes more, since it
  // has grown, is loaded beside others of at most a quarter of max_bytes.
  // `release` is called when there is no room: it has others soon let go of models that they keep for a while.
  ModelCache(MemoryBudget& budget, size_t max_bytes, Loader load, std::function<void()> release)
      : budget_(budget),
        max_bytes_(max_bytes),
        load_(std::move(load)),
        release_(std::move(release)) {
    budget_.OnNoRoom([this] {
      release_();
      MutexLock lock(&mutex_);
      Evict();
    });
  }

  // The model, loaded if necessary. Concurrent callers wait for one load, each until its own work is
  // stopped (StoppedError); the load is stopped once no caller waits for it. Returns the
  // loader's error, or that of MakeRoom for what it turns out to take.
  absl::StatusOr<std::shared_ptr<Model>> Acquire(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The model if it is in memory, else null. Does not count as a use.
  std::shared_ptr<Model> Find(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, but waits for a load in progress.
  std::shared_ptr<Model> FindAfterLoad(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  // For the loader, before it takes memory: counts these bytes for the model of that name, which is
  // being loaded, and evicts others for them. RESOURCE_EXHAUSTED (MODEL_TOO_LARGE) if those in use
  // leave no room for 2 s; StoppedError.
  absl::Status MakeRoom(absl::string_view name, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes the model from memory if it is the one of its name. Holders keep it.
  void Remove(const Model& model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes and removes whichever model of that name is in memory, after a load in progress.
  void CloseAndRemove(absl::string_view name, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Measures the memory of a model that has grown, and evicts others if it has to.
  void UpdateMemory(const Model& model) ABSL_LOCKS_EXCLUDED(mutex_);

  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Slot {
    // Null while it is being loaded.
    std::shared_ptr<Model> model;
    // Threads that wait for the load, besides the one that loads.
    std::shared_ptr<std::atomic<int>> waiting;
    size_t bytes = 0;
    // In lru_.
    std::list<std::string>::iterator position;
  };

  // Evicts models that are not held until the rest fits.
  void Evict() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitLoad(absl::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, until the thread's work is stopped; returns whether the load ended.
  bool AwaitLoadUnlessStopped(absl::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveSlot(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the bytes of the slot of that name, once there is room. Errors as MakeRoom.
  absl::Status Resize(absl::string_view name, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoRoom(absl::string_view name, size_t bytes, size_t others);
  void Count(Slot& slot, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  MemoryBudget& budget_;
  const size_t max_bytes_;
  const Loader load_;
  const std::function<void()> release_;

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  // Names, most recently used first.
  std::list<std::string> lru_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t loads_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evictions_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
