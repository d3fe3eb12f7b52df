// The examples that a model keeps: the latest that caused updates, and a sample of all it judged.
//
//   sample    of the different examples judged, those with the least hashes (bottom-k; Broder
//   1997):
//             uniform, the same whatever the order and the repetitions, and everything there is
//             while it has room
//   complete  it holds every example the model ever judged: none was turned away or pushed out, and
//             none was lost with the process. Never claimed wrongly: two examples with one hash are
//             told apart by their bytes, and the second ends the claim
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/model/retained_row.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// See perceptron.v1.Retention.
struct RetentionSettings {
  static constexpr uint32_t kMost = 1'000'000;
  static constexpr uint32_t kDefaultUpdates = 1000;

  uint32_t updates = kDefaultUpdates;
  uint32_t sample = 0;
};

// An example that caused an update.
struct RetainedUpdate {
  RetainedRowPtr row;
  // What it produced.
  uint64_t revision = 0;
  // The example's own.
  float weight = 1;
  // Before it was learned.
  float score = 0;
  // Examples judged before it, of learners that count them (CatalogueEntry::counts_examples).
  std::optional<uint64_t> age = std::nullopt;
};

// What is kept, in numbers.
struct RetentionStatistics {
  uint64_t updates = 0;
  uint64_t sampled = 0;
  // Of the sample.
  bool complete = false;
  size_t memory_bytes = 0;
};

// What is kept at one moment. The rows are shared, not copied.
struct RetainedExamples {
  // By ascending revision.
  std::vector<RetainedUpdate> updates;
  // By ascending hash.
  std::vector<std::pair<uint64_t, RetainedRowPtr>> sample;
  bool complete = false;
  // Hashes from here on have no place.
  uint64_t hash_limit = 0;
};

// Thread contract: safe for any number of threads. Its lock is the last in the model's order, and
// is held for a look-up or for what comes in; by Copy for some 20 ns an example kept.
class Retention {
 public:
  static constexpr size_t kMaxUpdateBytes = size_t{64} << 20;
  static constexpr size_t kMaxSampleBytes = size_t{1} << 30;
  using Sampled = std::pair<uint64_t, RetainedRowPtr>;

  explicit Retention(const RetentionSettings& settings)
      : settings_(settings), complete_(settings.sample > 0) {}

  bool keeps_updates() const { return settings_.updates > 0; }
  bool samples() const { return settings_.sample > 0; }

  // A copy of the example for the sample, if it has a place there and is not in it. `names` is the
  // model's dictionary. O(row.size + log sample).
  bool IsCandidate(const SeenExample& seen, const Dictionary& names, Sampled& candidate) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes candidates into the sample. What they were taken for must be counted by whoever holds the
  // books in the same breath.
  void Add(std::span<const Sampled> candidates, const Dictionary& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AddUpdate(RetainedUpdate update) ABSL_LOCKS_EXCLUDED(mutex_);
  // Examples were judged that nobody has any more.
  void Miss() ABSL_LOCKS_EXCLUDED(mutex_);

  RetentionStatistics Standing() const ABSL_LOCKS_EXCLUDED(mutex_);
  RetainedExamples Copy() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of them the updates.
  std::vector<RetainedUpdate> CopyUpdates() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the sample, what came since the last snapshot.
  size_t unsaved_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // A snapshot now has so much of what was unsaved.
  void Saved(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Goes on from what a snapshot holds.
  void Restore(RetainedExamples examples) ABSL_LOCKS_EXCLUDED(mutex_);
  // After everything was restored and replayed: whether that is all that the books speak of.
  void Settle(bool complete, uint64_t sampled) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  void Take(const Sampled& candidate, const Dictionary& names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RetentionSettings settings_;
  // Read without the lock: most examples of a full sample end there.
  std::atomic<uint64_t> hash_limit_ = kNoLimit;

  mutable Mutex mutex_;
  std::deque<RetainedUpdate> updates_ ABSL_GUARDED_BY(mutex_);
  size_t updates_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::btree_map<uint64_t, RetainedRowPtr> sample_ ABSL_GUARDED_BY(mutex_);
  size_t sample_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unsaved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool complete_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
