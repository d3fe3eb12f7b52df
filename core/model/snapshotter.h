// Keeps replay and disk bounded: takes snapshots of models whose journal has grown, beside serving.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/journal/journal.h"
#include "core/model/committer.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Snapshotter {
 public:
  // Told, from the snapshotter's thread, of each model that cannot be snapshot; again only once it
  // could be in between.
  using OnFailure = std::function<void(const std::string& model, const absl::Status& why)>;

  Snapshotter(Journal& journal, Committer& committer, OnFailure on_failure);
  ~Snapshotter();
  // Finishes the snapshot it is at and leaves the others for another time: they only shorten
  // replay. Requests from then on are ignored.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Asks for a snapshot. A model that already waits is not asked for twice.
  void Request(std::shared_ptr<Model> model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no snapshot of that model is asked for or under way.
  void Await(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t snapshots() const { return snapshots_.load(std::memory_order_relaxed); }
  // Those that could not be written: the journal keeps every record that they would have covered.
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Take(const std::shared_ptr<Model>& model);
  void Failed(const Model& model, const absl::Status& why);

  Journal& journal_;
  Committer& committer_;
  const OnFailure on_failure_;
  std::atomic<uint64_t> snapshots_ = 0;
  std::atomic<uint64_t> failures_ = 0;
  // Models whose last snapshot failed. The thread's own.
  absl::flat_hash_set<uint64_t> failing_;
  Mutex mutex_;
  std::vector<std::shared_ptr<Model>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perceptrond
