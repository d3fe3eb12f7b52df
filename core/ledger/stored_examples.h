// The examples that a model keeps: the latest that caused updates, and a sample of all it
// evaluated. Each is a copy of its own, in the space of the weights.
//
//   sample    of the distinct examples evaluated, those with the smallest hashes (bottom-k
//             sampling; Broder 1997). It is uniform, and independent of order and repetitions.
//             While it has room it holds every distinct example.
//   complete  the sample holds every example that the model ever evaluated: none was left out for
//             lack of room, and none was lost with the process. The claim is never wrong: two
//             examples with one hash are compared, and if they differ the claim ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/features/names.h"
#include "core/settings/settings.h"
#include "core/sync/mutex.h"
#include "core/vector/row.h"

namespace perceptrond {

// An example as the learner sees it. Views arrays of others, which must outlive it.
struct SeenExample {
  Row row;
  int32_t label = 0;
  // In a named space: the names of the features whose index is 0 (they have no weight yet), in
  // order.
  std::span<const absl::string_view> unknown;
};

// Thread contract: immutable once it is shared, and then safe for any number of threads.
struct StoredRow {
  StoredRow() = default;
  explicit StoredRow(const SeenExample& seen);

  // A view, valid as long as this lives.
  Row row() const;
  // The row with its label and unknown names; `names` holds the views of the names.
  SeenExample Seen(std::vector<absl::string_view>& names) const;
  // Approximate.
  size_t memory_bytes() const;

  bool dense = false;
  // Empty if dense.
  std::vector<uint32_t> indices;
  std::vector<float> values;
  int32_t label = 0;
  // Names that had no weight when the example came. They may have one by now.
  std::vector<std::string> unknown;
};

using StoredRowPtr = std::shared_ptr<const StoredRow>;
// A row of the sample, by HashOf.
using SampledRow = std::pair<uint64_t, StoredRowPtr>;

// XXH3-64 of label, features and values. In a named space features count by their names, in any
// order, so that the hash is the same before and after they get weights. O(row.size).
uint64_t HashOf(const SeenExample& seen, const Dictionary& names);
// Whether label, features and values are equal to the bit. O(row.size), but of names in another
// order O(row.size log row.size).
bool SameExample(const SeenExample& a, const SeenExample& b, const Dictionary& names);

// An example that caused an update.
struct StoredUpdate {
  StoredRowPtr row;
  // The revision that the update produced. 0: the example is of the sample and caused none.
  uint64_t revision = 0;
  // The example's own weight.
  float weight = 1;
  // The score before the update.
  float score = 0;
  // Examples evaluated before it, for learners that count them (CatalogueEntry::counts_examples).
  std::optional<uint64_t> age = std::nullopt;
  // Evaluation::rival.
  int32_t rival = -1;
};

struct StoredExamplesStatistics {
  uint64_t updates = 0;
  uint64_t sampled = 0;
  // The sample holds every example evaluated.
  bool complete = false;
  size_t sample_bytes = 0;
  // The sample's, and those of the updates.
  size_t memory_bytes = 0;
};

// The stored examples of one moment. Shares the rows.
struct StoredExamplesCopy {
  // By ascending revision.
  std::vector<StoredUpdate> updates;
  // By ascending hash.
  std::vector<SampledRow> sample;
  bool complete = false;
  // The sample takes hashes below this limit.
  uint64_t hash_limit = 0;
};

// Thread contract: safe for any number of threads. Its lock is the last in the model's order. It is
// held for look-ups and additions; by Copy for some 20 ns an example; by a Sampler see there.
class StoredExamples {
 public:
  explicit StoredExamples(const StoredExamplesSettings& settings)
      : settings_(settings), complete_(settings.sample > 0) {}

  bool keeps_updates() const { return settings_.updates > 0; }
  bool samples() const { return settings_.sample > 0; }

  // Selects candidates for the sample. Acquires the lock, shared, with the first example whose hash
  // has room, and holds it until Release. Not thread-safe.
  class Sampler {
   public:
    explicit Sampler(const StoredExamples& stored) : stored_(stored) {}
    ~Sampler() { Release(); }
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    // Copies the example to `candidates` unless the sample has it or has no room for its hash.
    // `names` is the model's dictionary. O(row.size + log sample).
    void Offer(const SeenExample& seen, const Dictionary& names,
               std::vector<SampledRow>& candidates);
    // To be called before anything else of StoredExamples.
    void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS;

   private:
    bool Holds(uint64_t hash, const SeenExample& seen,
               const Dictionary& names) ABSL_NO_THREAD_SAFETY_ANALYSIS;

    const StoredExamples& stored_;
    bool locked_ = false;
  };

  // Adds candidates to the sample. The caller counts their examples under the same ledger lock.
  void Add(std::span<const SampledRow> candidates, const Dictionary& names)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AddUpdate(StoredUpdate update) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that evaluated examples are missing: the sample is not complete.
  void MarkIncomplete() ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops all, as their features are no longer those of the model's examples: MarkIncomplete.
  void DropAll() ABSL_LOCKS_EXCLUDED(mutex_);

  StoredExamplesStatistics statistics() const ABSL_LOCKS_EXCLUDED(mutex_);
  StoredExamplesCopy Copy() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<StoredUpdate> CopyUpdates() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes of the sample that no snapshot holds yet.
  size_t unsaved_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that a snapshot holds `bytes` of them.
  void MarkSaved(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Recovery. Adds the examples of a snapshot.
  void Restore(StoredExamplesCopy examples) ABSL_LOCKS_EXCLUDED(mutex_);
  // Recovery, after replay. The committed counters say that the sample was complete, and its size:
  // it is complete now only if it holds that many.
  void FinishRecovery(bool complete, uint64_t sampled) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  void AddToSample(const SampledRow& candidate, const Dictionary& names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropWhatHasNoRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropLargestHash() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StoredExamplesSettings settings_;
  // Read without the lock: most examples have no room in a full sample.
  std::atomic<uint64_t> hash_limit_ = kNoLimit;

  mutable Mutex mutex_;
  std::deque<StoredUpdate> updates_ ABSL_GUARDED_BY(mutex_);
  size_t updates_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::btree_map<uint64_t, StoredRowPtr> sample_ ABSL_GUARDED_BY(mutex_);
  size_t sample_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t unsaved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool complete_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
