// The latest entries of a partition in memory, for those in this process that read them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class RecentEntries {
 public:
  // Holds the latest entries, of about this many bytes together; 0: none, so that a tail sees none.
  explicit RecentEntries(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Adds entries that follow the last one, written by the writer of that epoch. The last of them
  // has `sequence`, and those before it the numbers just below.
  void Add(std::span<const JournalEntry> entries, uint64_t sequence, int64_t epoch)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AddTakeOver(const storage::TakeOver& take_over, uint64_t sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As JournalTail::Next, after this sequence number.
  absl::StatusOr<std::vector<SequencedEntry>> Read(uint64_t after, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Held {
    std::shared_ptr<const SequencedEntry> entry;
    size_t bytes = 0;
  };

  void AddAll(std::vector<Held> added, uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t max_bytes_;
  Mutex mutex_;
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the entry added last, and of the last one that is no longer held.
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A tail of the entries of `recent`. `epoch`: of the writer at `after`.
std::unique_ptr<JournalTail> TailOf(std::shared_ptr<RecentEntries> recent, uint64_t after,
                                    int64_t epoch = 0);

}  // namespace perceptrond
