// The memory that everything shares that grows with load: models, and data in flight, which is
// requests, answers and analyses.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// What memory is reserved for.
enum class MemoryUse : uint8_t {
  // Models in memory, copies of them that snapshots are written from or read to, and predictions
  // that wait for their labels.
  kModels,
  // Received messages without an answer, and what learning them takes until it is written.
  kRequests,
  // Answers that the client has not received.
  kAnswers,
  kAnalyses,
};
inline constexpr size_t kMemoryUses = 4;
// "models", "requests", "answers", "analyses".
absl::string_view MemoryUseName(MemoryUse use);

// Counts what is reserved against one limit. A part of it, the share, is for data in flight alone;
// beyond it models are evicted for data in flight, as far as they are not in use, up to a limit of
// its own.
//
// Never waits for memory. Data in flight cannot be stuck: while it is below half of the share, any
// reservation succeeds, so that at least one message at a time can go on, whatever its size.
//
// Thread contract: safe for any number of threads. Takes a lock only to evict.
class MemoryBudget {
 public:
  // max_in_flight: at least `share`.
  MemoryBudget(size_t limit, size_t share,
               size_t max_in_flight = std::numeric_limits<size_t>::max())
      : limit_(limit), share_(share), max_in_flight_(max_in_flight) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // `evict` evicts models until they fit model_room(). Any thread that reserves may call it. To be
  // set before the first reservation.
  void OnNoRoom(std::function<void()> evict) { evict_ = std::move(evict); }

  // Reserves memory for data in flight if it fits, after evicting models if it has to. False:
  // nothing is reserved, and the refusal is counted.
  bool TryReserve(MemoryUse use, size_t bytes);
  // Reserves it in any case: for memory that is in use already, or that all of it waits for.
  void Reserve(MemoryUse use, size_t bytes);
  void Release(MemoryUse use, size_t bytes);
  // Counts memory of models as `now` instead of `before`. Evicts nothing.
  void ChangeModels(size_t before, size_t now);
  // Evicts models as far as they exceed model_room() and are not in use.
  void EvictModels() { evict_(); }

  // What models may take now.
  size_t model_room() const;
  // Data in flight takes more than half of its share: streams should not read ahead, and clients
  // that do not read should be disconnected.
  bool IsShort() const { return in_flight() > share_ / 2; }
  size_t limit() const { return limit_; }
  size_t max_in_flight() const { return max_in_flight_; }
  // Whether this much more data in flight is above its own limit, whatever the models take.
  bool ExceedsInFlight(size_t bytes) const { return in_flight() + bytes > max_in_flight_; }
  // What data in flight can have whatever the models take.
  size_t share() const { return share_; }
  size_t reserved(MemoryUse use) const { return Of(use).bytes.load(std::memory_order_relaxed); }
  // How often memory was refused to this use.
  uint64_t refusals(MemoryUse use) const {
    return Of(use).refusals.load(std::memory_order_relaxed);
  }
  void CountRefusal(MemoryUse use) { Of(use).refusals.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Use {
    std::atomic<size_t> bytes = 0;
    std::atomic<uint64_t> refusals = 0;
  };

  size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  bool Fits(size_t in_flight) const {
    return in_flight <= share_ ||
           (in_flight <= max_in_flight_ && in_flight + reserved(MemoryUse::kModels) <= limit_);
  }
  const Use& Of(MemoryUse use) const { return uses_[static_cast<size_t>(use)]; }
  Use& Of(MemoryUse use) { return uses_[static_cast<size_t>(use)]; }

  const size_t limit_;
  const size_t share_;
  const size_t max_in_flight_;
  std::function<void()> evict_ = [] {};
  std::array<Use, kMemoryUses> uses_;
  // The sum of all uses but kModels.
  std::atomic<size_t> in_flight_ = 0;
};

// Counts the copy of a model that a snapshot is written from, or read to, while it exists; evicts
// models for it.
class ModelCopyMemory {
 public:
  ModelCopyMemory(MemoryBudget& budget, size_t bytes) : budget_(budget), bytes_(bytes) {
    budget_.ChangeModels(0, bytes_);
    budget_.EvictModels();
  }
  ~ModelCopyMemory() { budget_.ChangeModels(bytes_, 0); }
  ModelCopyMemory(const ModelCopyMemory&) = delete;
  ModelCopyMemory& operator=(const ModelCopyMemory&) = delete;

 private:
  MemoryBudget& budget_;
  const size_t bytes_;
};

// Lets large pieces of work that take memory only while they run, as parsing a message, run only as
// far as they fit the budget's share together. One that fits by no means runs alone.
//
// Thread contract: safe for any number of threads.
class WorkMemory {
 public:
  explicit WorkMemory(size_t capacity) : capacity_(capacity) {}

  // Holds its bytes while it exists, unless they are fewer than kFreeBytes. Waits until they fit,
  // or no other holds any: so the owner of one may not wait for another.
  class Lease {
   public:
    static constexpr size_t kFreeBytes = 256 << 10;

    Lease(WorkMemory& all, size_t bytes) ABSL_LOCKS_EXCLUDED(all.mutex_);
    ~Lease() ABSL_LOCKS_EXCLUDED(all_.mutex_);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

   private:
    WorkMemory& all_;
    const size_t bytes_;
  };

 private:
  const size_t capacity_;
  Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

// RESOURCE_EXHAUSTED (MEMORY_EXHAUSTED), with RetryInfo: `what`, of this many bytes, does not fit the
// memory budget now.
absl::Status MemoryExhausted(absl::string_view what, size_t bytes, const MemoryBudget& budget);

}  // namespace perceptrond
