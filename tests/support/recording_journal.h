// Keeps a copy of every record that was ever committed, also of those that a snapshot dropped, and
// lets a test wait for snapshots.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/sync/mutex.h"
#include "gtest/gtest.h"
#include "tests/support/journal_decorator.h"

namespace perceptrond::testing {

class RecordingJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    absl::StatusOr<CommitOutcome> outcome = JournalDecorator::Commit(entries, options);
    if (!outcome.ok() || outcome->stale) return outcome;
    MutexLock lock(&mutex_);
    for (const JournalEntry& entry : entries) {
      records_.insert(records_.end(), entry.records.begin(), entry.records.end());
    }
    return outcome;
  }
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    // A snapshot ahead of its counters would be a model that no crash leaves loadable.
    const absl::StatusOr<storage::Counters> counters = LoadCounters(model_id);
    if (counters.ok() && counters->report().updates() > 0) {  // 0: deleted meanwhile
      EXPECT_LE(snapshot.revision(), counters->report().updates());
    }
    const absl::Status status = JournalDecorator::SaveSnapshot(model_id, snapshot);
    MutexLock lock(&mutex_);
    ++snapshots_;
    return status;
  }

  // In the order they were committed.
  std::vector<storage::UpdateRecord> records() const {
    MutexLock lock(&mutex_);
    return records_;
  }
  // How many were saved or tried, ever.
  int snapshots() const {
    MutexLock lock(&mutex_);
    return snapshots_;
  }
  // Waits until `count` snapshots were saved since the beginning.
  void AwaitSnapshots(int count) {
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return snapshots_ >= count; };
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&enough));
  }

 private:
  mutable Mutex mutex_;
  std::vector<storage::UpdateRecord> records_ ABSL_GUARDED_BY(mutex_);
  int snapshots_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond::testing
