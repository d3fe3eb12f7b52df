// Faults injected under the journal on purpose: chosen calls fail, before or after they took
// effect.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/sync/mutex.h"
#include "tests/support/journal_decorator.h"

namespace perceptrond::testing {

class FaultyJournal final : public JournalDecorator {
 public:
  enum class Call { kCommit, kSync, kSaveSnapshot, kLoadCommittedState, kLoadSnapshot, kReplay };
  enum class Fate {
    kWorks,
    // UNAVAILABLE, and nothing was written.
    kFails,
    // UNAVAILABLE, although it was written: what a lost answer looks like, or a write that appears
    // after a restart.
    kFailsAfterwards,
    // kCommit only. UNAVAILABLE; the records were written, the counters and positions not: what a
    // home without atomic batches may leave.
    kLeavesRecords,
  };
  // Decides each call's fate; `number` counts the calls of its kind from 1.
  using Plan = std::function<Fate(Call call, uint64_t number)>;

  FaultyJournal(std::shared_ptr<Journal> base, Plan plan)
      : JournalDecorator(base), base_(std::move(base)), plan_(std::move(plan)) {}

  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    const Fate fate = Next(Call::kCommit);
    if (fate == Fate::kLeavesRecords) LeaveRecords(entries);
    absl::StatusOr<CommitOutcome> outcome(Injected());
    const absl::Status status = Run(fate, [&] {
      outcome = base_->Commit(entries, options);
      return outcome.status();
    });
    return status.ok() ? outcome : status;
  }
  absl::Status Sync() override {
    return Run(Next(Call::kSync), [&] { return base_->Sync(); });
  }
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    return Run(Next(Call::kSaveSnapshot), [&] { return base_->SaveSnapshot(model_id, snapshot); });
  }
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    if (Next(Call::kLoadCommittedState) != Fate::kWorks) return Injected();
    return base_->LoadCommittedState(model_id);
  }
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override {
    if (Next(Call::kLoadSnapshot) != Fate::kWorks) return Injected();
    return base_->LoadSnapshot(model_id);
  }
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override {
    if (Next(Call::kReplay) != Fate::kWorks) return Injected();
    return base_->Replay(model_id, after_revision, replay);
  }

 private:
  static absl::Status Injected() { return absl::UnavailableError("injected fault"); }

  Fate Next(Call call) {
    MutexLock lock(&mutex_);
    return plan_(call, ++calls_[static_cast<size_t>(call)]);
  }
  template <typename Write>
  static absl::Status Run(Fate fate, Write write) {
    if (fate == Fate::kWorks) return write();
    if (fate == Fate::kFailsAfterwards && !write().ok()) return absl::InternalError("base failed");
    return Injected();
  }
  void LeaveRecords(std::span<const JournalEntry> entries) {
    std::vector<JournalEntry> halves(entries.begin(), entries.end());
    for (JournalEntry& half : halves) {
      half.counters = base_->LoadCounters(half.model_id).value();
      half.positions.clear();
    }
    base_->Commit(halves, {}).IgnoreError();
  }

  const std::shared_ptr<Journal> base_;
  Mutex mutex_;
  const Plan plan_ ABSL_GUARDED_BY(mutex_);
  uint64_t calls_[6] ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace perceptrond::testing
