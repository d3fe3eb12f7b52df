// Predictions whose labels come later: their features wait here, within the time and the bytes that
// their model's settings state, until an example names them by their ids.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/ledger/segment.h"
#include "core/memory/memory_budget.h"
#include "core/settings/settings.h"
#include "core/sync/mutex.h"
#include "core/vector/check.h"

namespace perceptrond {

// The id of a prediction: "{server}.{model}.{number}.{nonce}", each in hexadecimal digits.
struct PredictionId {
  // Of the server that keeps it: ServerTag.
  uint32_t server = 0;
  // The journal's id of the model.
  uint64_t model_id = 0;
  // KeptPrediction's. The microseconds since the Unix epoch when it was made, or the next free
  // number.
  uint64_t number = 0;
  uint64_t nonce = 0;

  std::string ToString() const;
  // False for other text.
  bool Parse(absl::string_view text);
};

// What names a server of a fleet in ids, by its address (FleetOptions::address); 0 for a server by
// itself, whose address is empty.
uint32_t ServerTag(absl::string_view address);

// Thread contract: safe for any number of threads. One of its own removes what has expired, once a
// second.
class WaitingPredictions {
 public:
  // The upper bounds of the delays' buckets, in seconds.
  static constexpr std::array<double, 9> kDelayBounds = {1,     10,    60,     600,    3600,
                                                         21600, 86400, 604800, 2592000};
  // Counts are since the server's start.
  struct Stats {
    uint64_t waiting = 0;
    uint64_t bytes = 0;
    uint64_t joined = 0;
    // Removed without a label: for their age, or for lack of room.
    uint64_t expired = 0;
    // The time from prediction to label of those joined: one a bucket, not cumulative, the last for
    // longer ones; and their sum in seconds.
    std::array<uint64_t, kDelayBounds.size() + 1> delays{};
    double delay_sum = 0;
  };
  // What is known of a prediction whose label has come.
  struct Found {
    // kNone, kUnknownPrediction or kPredictionExpired.
    ValidationCode code = ValidationCode::kUnknownPrediction;
    // A perceptron.v1.Example, with features alone.
    std::string example;
    // KeptPrediction::number if the journal keeps it; else 0.
    uint64_t number = 0;
    // The server that keeps it did not answer: it may be claimed there, and is to be released.
    bool unanswered = false;
  };
  // The same on another server of a fleet: claims, joins or releases by text, in one call.
  struct Exchange {
    std::vector<std::string> claimed;
    std::vector<std::string> joined;
    std::vector<std::string> released;
  };
  // Passes it to the server of this tag. `done` is called once, on any thread, with one result for each id claimed.
  using Elsewhere = std::function<void(uint32_t server, uint64_t model_id, const Exchange& exchange,
                                       std::function<void(std::vector<Found>)> done)>;
  using Clock = std::function<absl::Time()>;

  // `address`: the server's in its fleet, or empty. The journal and the budget must outlive it.
  WaitingPredictions(KeptPredictions& journal, MemoryBudget& budget, absl::string_view address,
                     Clock clock = absl::Now);
  ~WaitingPredictions();
  WaitingPredictions(const WaitingPredictions&) = delete;
  WaitingPredictions& operator=(const WaitingPredictions&) = delete;

  // How predictions of other servers are found. To be set before the first call.
  void FindElsewhere(Elsewhere elsewhere) { elsewhere_ = std::move(elsewhere); }

  // A model that keeps predictions was loaded. The first time, those that the journal has are
  // loaded. UNAVAILABLE; DATA_LOSS.
  absl::Status Open(uint64_t model_id, const StoredPredictionsSettings& settings)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The model was deleted.
  void Remove(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps features; an id for each, empty for an empty example and for one that is too large. The
  // model is open. UNAVAILABLE: the journal cannot be written, and nothing is kept. O(examples).
  absl::StatusOr<std::vector<std::string>> Add(uint64_t model_id, std::vector<std::string> examples)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Finds predictions of a model, and reserves those found for the caller until it settles them:
  // until then another finds none of them. Those of other servers are asked for, which may take
  // seconds. One that never is settled, as the other server has died, expires: it may be learned.
  std::vector<Found> Claim(uint64_t model_id, std::span<const absl::string_view> ids)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the reservation of predictions that the caller claimed: they were learned, and are removed
  // (from the journal the commit of their rows has removed them); or were not, and wait on.
  void Settle(uint64_t model_id, std::span<const std::string> joined,
              std::span<const std::string> released) ABSL_LOCKS_EXCLUDED(mutex_);

  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    uint64_t nonce = 0;
    std::string example;
    bool claimed = false;
  };
  struct Table {
    StoredPredictionsSettings settings;
    absl::btree_map<uint64_t, Waiting> waiting;
    size_t bytes = 0;
    uint64_t last_number = 0;
    // Those up to this one were removed for lack of room, unless they wait.
    uint64_t removed_through = 0;
  };
  // Numbers whose journal entries are to be removed, by model.
  using Dropped = std::vector<std::pair<uint64_t, uint64_t>>;

  bool IsTooOld(uint64_t model_id, absl::string_view id) const ABSL_LOCKS_EXCLUDED(mutex_);
  Found ClaimHere(uint64_t model_id, const PredictionId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SettleHere(uint64_t model_id, std::span<const std::string> ids, bool joined)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes those that are too old, and the oldest as far as there are too many.
  void Trim(uint64_t model_id, Table& table, absl::Time now, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same for all models together.
  void TrimAll(Dropped& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveOldest(uint64_t model_id, Table& table, Dropped& dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(Table& table, uint64_t number, Waiting waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Erase(Table& table, absl::btree_map<uint64_t, Waiting>::iterator it)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFromJournal(const Dropped& dropped);
  void RemoveExpired() ABSL_LOCKS_EXCLUDED(mutex_);

  KeptPredictions& journal_;
  MemoryBudget& budget_;
  const uint32_t server_;
  const Clock clock_;
  // The most bytes that all of them take.
  const size_t max_bytes_;
  Elsewhere elsewhere_;

  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Table> tables_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Runs from the first Open on.
  std::thread thread_;
};

// Predictions of one message that are being learned: those that are not joined wait on once it
// ends. Not thread-safe.
class ClaimedPredictions {
 public:
  ClaimedPredictions(WaitingPredictions& all, uint64_t model_id) : all_(all), model_id_(model_id) {}
  ~ClaimedPredictions() { all_.Settle(model_id_, {}, ids_); }
  ClaimedPredictions(const ClaimedPredictions&) = delete;
  ClaimedPredictions& operator=(const ClaimedPredictions&) = delete;

  // Claims ids[i], of row rows[i], which ascend, from i = first on; of the others nothing is known.
  std::vector<WaitingPredictions::Found> Claim(std::span<const absl::string_view> ids, size_t first,
                                               std::span<const size_t> rows);
  // Those claimed that the journal keeps, for LearnCall::predictions.
  std::span<const PredictionOfRow> kept() const { return kept_; }
  // Releases all but those of rows that were learned: rows first to end - 1 without those in
  // `refused`, which ascend.
  void Keep(size_t first, size_t end, std::span<const RowError> refused);
  // What they caused is durable: they are removed.
  void Join() {
    all_.Settle(model_id_, ids_, {});
    ids_.clear();
    rows_.clear();
  }

 private:
  WaitingPredictions& all_;
  const uint64_t model_id_;
  // Those claimed, and their rows, ascending.
  std::vector<std::string> ids_;
  std::vector<size_t> rows_;
  std::vector<PredictionOfRow> kept_;
};

}  // namespace perceptrond
