#include "core/journal/recent_entries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace perceptrond {
namespace {

constexpr size_t kMostBytesAtOnce = 4 << 20;

size_t BytesOf(const JournalEntry& entry) {
  size_t bytes = sizeof(SequencedEntry) + entry.counters.ByteSizeLong();
  for (const storage::UpdateRecord& record : entry.records) bytes += record.ByteSizeLong();
  for (const storage::ProducerPosition& position : entry.positions)
    bytes += position.ByteSizeLong();
  return bytes;
}

class RecentTail final : public JournalTail {
 public:
  RecentTail(std::shared_ptr<RecentEntries> recent, uint64_t after, int64_t epoch)
      : recent_(std::move(recent)), after_(after), epoch_(epoch) {}

  absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
    absl::StatusOr<std::vector<SequencedEntry>> entries = recent_->Read(after_, timeout);
    if (entries.ok() && !entries->empty()) {
      after_ = entries->back().sequence;
      epoch_ = entries->back().epoch;
    }
    return entries;
  }
  int64_t epoch() const override { return epoch_; }

 private:
  const std::shared_ptr<RecentEntries> recent_;
  uint64_t after_;
  int64_t epoch_;
};

}  // namespace

void RecentEntries::Add(std::span<const JournalEntry> entries, uint64_t sequence, int64_t epoch) {
  if (max_bytes_ == 0) return;
  std::vector<Held> added;
  uint64_t own = sequence - entries.size();
  const absl::Time now = absl::Now();
  for (const JournalEntry& entry : entries) {
    SequencedEntry one{++own, now, epoch, std::nullopt, entry};
    added.push_back({std::make_shared<const SequencedEntry>(std::move(one)), BytesOf(entry)});
  }
  AddAll(std::move(added), sequence);
}

void RecentEntries::AddTakeOver(const storage::TakeOver& take_over, uint64_t sequence) {
  if (max_bytes_ == 0) return;
  SequencedEntry one{sequence, absl::Now(), take_over.epoch(), take_over, {}};
  std::vector<Held> added;
  added.push_back({std::make_shared<const SequencedEntry>(std::move(one)),
                   sizeof(SequencedEntry) + take_over.ByteSizeLong()});
  AddAll(std::move(added), sequence);
}

void RecentEntries::AddAll(std::vector<Held> added, uint64_t sequence) {
  MutexLock lock(&mutex_);
  last_ = sequence;
  for (Held& held : added) {
    bytes_ += held.bytes;
    held_.push_back(std::move(held));
  }
  while (bytes_ > max_bytes_ && held_.size() > 1) {
    bytes_ -= held_.front().bytes;
    dropped_ = held_.front().entry->sequence;
    held_.pop_front();
  }
}

absl::StatusOr<std::vector<SequencedEntry>> RecentEntries::Read(uint64_t after,
                                                                absl::Duration timeout) {
  const auto has_more = [this, after]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return last_ > after; };
  std::vector<std::shared_ptr<const SequencedEntry>> found;
  {
    MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&has_more), timeout))
      return std::vector<SequencedEntry>();
    if (after < dropped_) {
      return absl::OutOfRangeError(absl::StrCat(
          "entries after ", after, " are no longer held, those after ", dropped_, " are"));
    }
    auto next = std::upper_bound(
        held_.begin(), held_.end(), after,
        [](uint64_t sequence, const Held& held) { return sequence < held.entry->sequence; });
    for (size_t bytes = 0; next != held_.end() && bytes < kMostBytesAtOnce; ++next) {
      bytes += next->bytes;
      found.push_back(next->entry);
    }
  }
  // Copied without the lock: the writer waits for it.
  std::vector<SequencedEntry> entries;
  for (const std::shared_ptr<const SequencedEntry>& entry : found) entries.push_back(*entry);
  return entries;
}

std::unique_ptr<JournalTail> TailOf(std::shared_ptr<RecentEntries> recent, uint64_t after,
                                    int64_t epoch) {
  return std::make_unique<RecentTail>(std::move(recent), after, epoch);
}

}  // namespace perceptrond
