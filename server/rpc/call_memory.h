// The memory of calls within the budget (core/memory/memory_budget.h), and the disconnection of
// clients that do not receive what they asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/memory/memory_budget.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class Call;
class CallMemory;

// What all calls share. While data in flight is short of memory, ends calls whose client takes too
// long to receive an answer: longer than write_timeout, and a second for each kSlowestBytes of it.
// A client that reads slowly, or that nothing is sent to, stays.
//
// Thread contract: safe for any number of threads.
class InFlightMemory {
 public:
  static constexpr size_t kSlowestBytes = 64 << 10;

  // The budget must outlive it.
  InFlightMemory(MemoryBudget& budget, absl::Duration write_timeout);
  // No call may use it any more.
  ~InFlightMemory();

  MemoryBudget& budget() { return budget_; }
  const MemoryBudget& budget() const { return budget_; }
  // For what messages take while they are parsed and handled.
  WorkMemory& work() { return work_; }
  uint64_t slow_consumers() const { return slow_consumers_.load(std::memory_order_relaxed); }

 private:
  friend class CallMemory;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndSlowCalls() ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(CallMemory* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(CallMemory* call) ABSL_LOCKS_EXCLUDED(mutex_);

  MemoryBudget& budget_;
  const absl::Duration write_timeout_;
  // How often calls are looked at.
  const absl::Duration interval_;
  WorkMemory work_;
  // Counts intervals, from 1 on: a clock that costs a load.
  std::atomic<uint32_t> tick_ = 1;
  std::atomic<uint64_t> slow_consumers_ = 0;

  Mutex mutex_;
  // Those that have held memory.
  absl::flat_hash_set<CallMemory*> calls_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since it uses all the others.
  std::thread thread_;
};

// The memory of one call. Holds nothing for up to kFreeBytes, which most calls never exceed, and
// otherwise multiples of kStepBytes, so that small changes cost nothing.
//
// Thread contract: TrySet and Set by one thread at a time, and so the other methods.
class CallMemory {
 public:
  static constexpr size_t kFreeBytes = 16 << 10;
  static constexpr size_t kStepBytes = 64 << 10;

  CallMemory(InFlightMemory& all, Call& call) : all_(all), call_(call) {}
  // Releases what it holds.
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  // Sets what the call holds for requests or for answers. False, and no change, if more does not
  // fit the budget.
  bool TrySet(MemoryUse use, size_t bytes);
  // The same in any case, for memory that is in use already.
  void Set(MemoryUse use, size_t bytes);

  // A message of N bytes is being sent to the client, or is sent.
  void OnWrite(size_t bytes) {
    written_bytes_.store(bytes, std::memory_order_relaxed);
    write_tick_.store(all_.tick_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  void OnWritten() { write_tick_.store(0, std::memory_order_relaxed); }

 private:
  friend class InFlightMemory;

  // What is held for `bytes`, now that `held` is.
  static size_t Target(size_t held, size_t bytes);
  size_t& Held(MemoryUse use) { return held_[use == MemoryUse::kAnswers ? 1 : 0]; }
  void Register();

  InFlightMemory& all_;
  Call& call_;
  // For requests and for answers.
  std::array<size_t, 2> held_ = {};
  bool registered_ = false;
  // When the message that is being sent was started; 0: none is.
  std::atomic<uint32_t> write_tick_ = 0;
  std::atomic<size_t> written_bytes_ = 0;
};

}  // namespace perceptrond
