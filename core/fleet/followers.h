// The models of one partition in memory that follow its writer on another server: each applies what
// that commits, in order. A model that is being loaded gets what is committed meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/journal/journal.h"
#include "core/model/model.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads, but Apply, which is called by one at a time.
class Followers {
 public:
  // A model cannot follow any more: it must leave memory. Called without a lock.
  using OnBroken =
      std::function<void(const std::shared_ptr<Model>& model, const absl::Status& why)>;
  // A model applied an entry.
  using OnFollowed = std::function<void(const Model& model)>;

  Followers(OnBroken on_broken, OnFollowed on_followed)
      : on_broken_(std::move(on_broken)), on_followed_(std::move(on_followed)) {}
  // Ends the waits for the models' revisions.
  ~Followers();

  // The model's journal is about to be read: entries from now on are kept for it.
  void BeginLoad(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // It was read. The model follows from now on, or may learn if this server writes the partition.
  // OUT_OF_RANGE: too much came meanwhile, and it must be loaded again. DATA_LOSS.
  absl::Status EndLoad(const std::shared_ptr<Model>& model) ABSL_LOCKS_EXCLUDED(mutex_);
  // It could not be read.
  void CancelLoad(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // EndLoad refuses all models that are being loaded now, since they may be of another log.
  void CancelLoads() ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on entries are of the writer of this epoch; the models in memory that follow have all
  // entries before.
  void SetEpoch(int64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next entry of the partition.
  void Apply(const SequencedEntry& entry) ABSL_LOCKS_EXCLUDED(mutex_);

  // This server writes the partition from now on: every entry before was applied, and its models
  // may learn.
  void StartWriting() ABSL_LOCKS_EXCLUDED(mutex_);
  // It does so no more: models that are loaded from now on follow. Those in memory, which must
  // leave it, are returned.
  std::vector<std::shared_ptr<Model>> StopWriting() ABSL_LOCKS_EXCLUDED(mutex_);
  // The models in memory, which must leave it: entries were missed.
  std::vector<std::shared_ptr<Model>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Follower {
    bool loading = false;
    // Empty while it is loaded.
    std::weak_ptr<Model> model;
    // Of the last entry that it has.
    uint64_t sequence = 0;
    // What came while it was loaded.
    std::vector<SequencedEntry> waiting;
    size_t waiting_bytes = 0;
  };

  // Applies an entry to a model, unless it has it. OUT_OF_RANGE if it lacks one before it.
  static absl::Status ApplyTo(Model& model, uint64_t& sequence, const SequencedEntry& entry);
  // Forgets models that have left memory, whenever there are twice as many as the last time.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OnBroken on_broken_;
  const OnFollowed on_followed_;
  mutable Mutex mutex_;
  bool writes_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // By model id.
  absl::flat_hash_map<uint64_t, Follower> followers_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace perceptrond
