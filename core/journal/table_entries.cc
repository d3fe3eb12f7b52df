// A journal in a table: the entries of partitions, their order and their chain.
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/stored_message.h"
#include "core/journal/table_journal.h"
#include "core/journal/table_keys.h"

namespace perceptrond {
namespace {

// How often a commit is tried again that others came before who had a right to.
constexpr int kMostCommitTries = 100;
constexpr size_t kMostEntryBytesAtOnce = 4 << 20;

constexpr size_t kHashBytes = 16;

void SetTime(absl::Time time, google::protobuf::Timestamp& stored) {
  const int64_t nanos = absl::ToUnixNanos(time);
  stored.set_seconds(nanos / 1'000'000'000);
  stored.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
}

CommitOutcome Stale(uint64_t sequence) { return {0, /*stale=*/true, sequence}; }

absl::Status OfAnotherLog() {
  return absl::OutOfRangeError(
      "the journal has lost entries that were read, as after the restore of an older copy");
}

}  // namespace

std::string table_rows::EntryHash(absl::string_view previous, absl::string_view bytes) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), previous.data(), previous.size());
  XXH3_128bits_update(state.get(), bytes.data(), bytes.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  static_assert(sizeof(canonical.digest) == kHashBytes);
  return {reinterpret_cast<const char*>(canonical.digest), kHashBytes};
}

absl::Status table_rows::ParseEntry(absl::string_view value, google::protobuf::MessageLite& entry,
                                    std::optional<std::string>& hash) {
  if (value.size() < kHashBytes) return absl::DataLossError("journal: an entry is cut");
  const absl::string_view bytes = value.substr(kHashBytes);
  const absl::string_view own = value.substr(0, kHashBytes);
  if (hash.has_value() && EntryHash(*hash, bytes) != own) return OfAnotherLog();
  hash = std::string(own);
  return ParseStored(bytes, entry, "an entry");
}

bool TableJournal::IsWriter(const Partition& partition) {
  return partition.own_epoch == partition.head->epoch() &&
         (partition.own_epoch == 0 || partition.own_hash == partition.head->hash());
}

absl::Status TableJournal::KnowHead(uint32_t number, Partition& partition) {
  if (partition.head.has_value()) return absl::OkStatus();
  absl::StatusOr<std::optional<std::string>> bytes = table_->Get(table_keys::Head(number));
  if (!bytes.ok()) return bytes.status();
  storage::PartitionHead head;
  if (bytes->has_value()) {
    if (absl::Status status = ParseStored(**bytes, head, "the end of a partition"); !status.ok())
      return status;
  }
  partition.bytes = *std::move(bytes);
  if (opening_epoch_ > 0) {
    // Above it if a copied model brought an epoch of a clock that was ahead.
    partition.own_epoch = std::max(opening_epoch_, head.epoch());
    head.set_epoch(partition.own_epoch);
  }
  partition.head = std::move(head);
  return absl::OkStatus();
}

absl::StatusOr<bool> TableJournal::CommitAt(uint32_t number, Partition& partition,
                                            TableChange& change, storage::PartitionHead next,
                                            bool sync) {
  const bool is_writer = IsWriter(partition);
  const std::string key = table_keys::Head(number);
  change.conditions.push_back({key, partition.bytes});
  if (absl::Status status = table_rows::Put(key, next, change); !status.ok()) return status;
  const std::string bytes = change.puts.back().value;
  absl::StatusOr<bool> done = table_->Commit(change, sync);
  if (absl::IsUnknown(done.status())) done = Settle(number, partition.bytes, bytes);
  if (done.ok() && *done) {
    if (is_writer) {
      partition.own_epoch = next.epoch();
      partition.own_hash = next.hash();
    }
    partition.head = std::move(next);
    partition.bytes = bytes;
  } else {
    partition.head.reset();
  }
  return done;
}

absl::StatusOr<bool> TableJournal::Settle(uint32_t number, const std::optional<std::string>& before,
                                          const std::string& after) {
  const std::string key = table_keys::Head(number);
  storage::PartitionHead head;
  if (before.has_value()) {
    if (absl::Status status = ParseStored(*before, head, "the end of a partition"); !status.ok())
      return status;
  }
  // Nobody else has written this attempt.
  head.set_attempt(head.attempt() + 1);
  TableChange change;
  change.conditions.push_back({key, before});
  if (absl::Status status = table_rows::Put(key, head, change); !status.ok()) return status;
  const absl::StatusOr<bool> excluded = table_->Commit(change, /*sync=*/true);
  if (!excluded.ok()) return absl::UnknownError(excluded.status().message());
  if (*excluded) return false;
  // It was made, or another one was.
  const absl::StatusOr<std::optional<std::string>> now = table_->Get(key);
  if (!now.ok()) return absl::UnknownError(now.status().message());
  // Another opener's may stand on it.
  if (*now != after) return absl::UnknownError("others have written since");
  // It may not be on a standby yet: what is committed after it is there only once it is.
  if (absl::Status synced = table_->Sync(); !synced.ok())
    return absl::UnknownError(synced.message());
  return true;
}

absl::StatusOr<std::vector<const JournalEntry*>> TableJournal::Living(
    std::span<const JournalEntry> entries) {
  std::vector<const JournalEntry*> living;
  for (const JournalEntry& entry : entries) {
    const TableChange::Condition alive = table_rows::IsAlive(entry.model_id);
    const absl::StatusOr<std::optional<std::string>> found = table_->Get(alive.key);
    if (!found.ok()) return found.status();
    if (*found == alive.value) living.push_back(&entry);
  }
  return living;
}

absl::Status TableJournal::HoldEntry(uint32_t number, const google::protobuf::MessageLite& entry,
                                     storage::PartitionHead& next, TableChange& change) {
  if (options_.held_bytes == 0) return absl::OkStatus();
  std::string bytes;
  if (absl::Status status = SerializeStored(entry, bytes); !status.ok()) return status;
  next.set_hash(table_rows::EntryHash(next.hash(), bytes));
  change.puts.push_back({table_keys::Entry(number, next.sequence()), next.hash() + bytes});
  if (next.held_bytes() == 0) next.set_first_held(next.sequence());
  next.set_held_bytes(next.held_bytes() + change.puts.back().value.size());
  return absl::OkStatus();
}

absl::Status TableJournal::DropEntries(uint32_t number, storage::PartitionHead& next,
                                       TableChange& change) {
  // A quarter at once, which is read again.
  if (next.held_bytes() <= options_.held_bytes + options_.held_bytes / 4) return absl::OkStatus();
  const uint64_t first = next.first_held();
  const KeyRange held{table_keys::Entry(number, first), table_keys::Entry(number, next.sequence())};
  absl::Status status = table_->Scan(held, [&](absl::string_view key, absl::string_view value) {
    if (next.held_bytes() <= options_.held_bytes) return false;
    next.set_held_bytes(next.held_bytes() - value.size());
    next.set_first_held(table_keys::ReadNumber(key.substr(held.begin.size() - 8)) + 1);
    next.set_hash_before_held(std::string(value.substr(0, kHashBytes)));
    return true;
  });
  if (next.first_held() > first)
    change.deletions.push_back({held.begin, table_keys::Entry(number, next.first_held())});
  return status;
}

absl::Status TableJournal::AddEntry(const JournalEntry& entry, uint32_t number,
                                    storage::PartitionHead& next, TableChange& change) {
  change.conditions.push_back(table_rows::IsAlive(entry.model_id));
  for (const storage::UpdateRecord& record : entry.records) {
    absl::Status status =
        table_rows::Put(table_keys::Record(entry.model_id, LastRevision(record)), record, change);
    if (!status.ok()) return status;
  }
  absl::Status status = table_rows::Put(table_keys::Of(entry.model_id, table_keys::Kind::kCounters),
                                        entry.counters, change);
  for (const storage::ProducerPosition& position : entry.positions) {
    if (!status.ok()) return status;
    status = table_rows::Put(table_keys::Position(entry.model_id, position.id()), position, change);
  }
  for (const EpochBegin& begin : entry.epochs) {
    change.puts.push_back(
        {table_keys::Epoch(entry.model_id, begin.epoch), table_keys::Number(begin.revision)});
    next.set_epoch(std::max(next.epoch(), begin.epoch));
  }
  for (const uint64_t prediction : entry.learned_predictions)
    change.deletions.push_back(
        table_keys::Only(table_keys::Prediction(entry.model_id, prediction)));
  next.set_sequence(next.sequence() + 1);
  if (!status.ok() || options_.held_bytes == 0) return status;
  storage::LogEntry held;
  held.set_epoch(next.epoch());
  held.set_model_id(entry.model_id);
  held.mutable_records()->Assign(entry.records.begin(), entry.records.end());
  *held.mutable_counters() = entry.counters;
  held.mutable_positions()->Assign(entry.positions.begin(), entry.positions.end());
  SetTime(absl::Now(), *held.mutable_time());
  return HoldEntry(number, held, next, change);
}

absl::StatusOr<CommitOutcome> TableJournal::Commit(std::span<const JournalEntry> entries,
                                                   const CommitOptions& options) {
  if (entries.empty()) return absl::InvalidArgumentError("a commit has an entry");
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const uint32_t number = PartitionOf(entries.front().model_id);
  Partition& partition = *partitions_[number];
  // Others read an entry as soon as it is there: one that is lost again would leave them with more than the log has.
  const bool sync = options.sync || options_.held_bytes > 0;
  std::vector<const JournalEntry*> living;
  for (const JournalEntry& entry : entries) living.push_back(&entry);
  MutexLock lock(&partition.mutex);
  for (int i = 0; i < kMostCommitTries; ++i) {
    if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
    storage::PartitionHead next = *partition.head;
    const uint64_t last = next.sequence();
    const bool may = options.expected.has_value() ? *options.expected == last : IsWriter(partition);
    if (!may) return Stale(last);
    if (living.empty()) return CommitOutcome{entries.size(), /*stale=*/false, last};
    TableChange change;
    for (const JournalEntry* entry : living) {
      if (absl::Status status = AddEntry(*entry, number, next, change); !status.ok()) return status;
    }
    if (absl::Status status = DropEntries(number, next, change); !status.ok()) return status;
    const uint64_t sequence = next.sequence();
    const absl::StatusOr<bool> done = CommitAt(number, partition, change, std::move(next), sync);
    if (!done.ok()) return done.status();
    if (*done) return CommitOutcome{entries.size(), /*stale=*/false, sequence};
    // Another opener wrote to a partition that nobody has taken over; or a model was deleted.
    const absl::StatusOr<std::vector<const JournalEntry*>> still = Living(entries);
    if (!still.ok()) return still.status();
    living = *still;
  }
  return absl::UnavailableError("journal: others change the partition all the time");
}

absl::StatusOr<CommitOutcome> TableJournal::TakeOver(uint32_t number, const std::string& address,
                                                     uint64_t expected) {
  if (options_.held_bytes == 0)
    return absl::FailedPreconditionError("only one server writes to this journal");
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return Seize(number, address, expected);
}

absl::StatusOr<CommitOutcome> TableJournal::Seize(uint32_t number, const std::string& address,
                                                  uint64_t expected) {
  Partition& partition = *partitions_[number];
  MutexLock lock(&partition.mutex);
  partition.head.reset();
  if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
  storage::PartitionHead next = *partition.head;
  if (next.sequence() != expected) return Stale(next.sequence());
  next.set_sequence(expected + 1);
  next.set_epoch(NextEpoch(*partition.head));
  storage::LogEntry entry;
  entry.set_epoch(next.epoch());
  entry.mutable_take_over()->set_epoch(next.epoch());
  entry.mutable_take_over()->set_address(address);
  SetTime(absl::Now(), *entry.mutable_time());
  TableChange change;
  if (absl::Status status = HoldEntry(number, entry, next, change); !status.ok()) return status;
  const int64_t epoch = next.epoch();
  const absl::StatusOr<bool> done =
      CommitAt(number, partition, change, std::move(next), /*sync=*/true);
  if (!done.ok()) return done.status();
  if (!*done) return Stale(expected);
  partition.own_epoch = epoch;
  partition.own_hash = partition.head->hash();
  return CommitOutcome{1, /*stale=*/false, expected + 1, epoch};
}

absl::StatusOr<bool> TableJournal::ConfirmWriter(uint32_t number) {
  if (options_.held_bytes == 0) return true;
  Partition& partition = *partitions_[number];
  MutexLock lock(&partition.mutex);
  if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
  if (!IsWriter(partition)) return false;
  storage::PartitionHead next = *partition.head;
  next.set_attempt(next.attempt() + 1);
  TableChange change;
  return CommitAt(number, partition, change, std::move(next), /*sync=*/true);
}

absl::StatusOr<uint64_t> TableJournal::LastSequence(uint32_t number) {
  const absl::StatusOr<storage::PartitionHead> head = ReadHead(*table_, number);
  if (!head.ok()) return head.status();
  return head->sequence();
}

absl::StatusOr<storage::PartitionHead> TableJournal::HeadAfter(uint64_t commits,
                                                               uint64_t reads_before,
                                                               uint32_t number) {
  const uint64_t reads = head_reads_;
  MutexLock lock(&heads_mutex_);
  // An error is that of those alone who waited for the read.
  if (commits > heads_after_ || head_reads_ == reads_before ||
      (!heads_.ok() && reads == head_reads_)) {
    heads_after_ = table_->AwaitCommit(0, absl::ZeroDuration());
    std::vector<storage::PartitionHead> heads(partition_count_ + 1);
    const std::string begin = table_keys::Head(0);
    absl::Status parsed;
    absl::Status status =
        table_->Scan({begin, table_keys::Head(partition_count_ + 1)},
                     [&](absl::string_view key, absl::string_view value) {
                       const uint64_t read = table_keys::ReadNumber(key.substr(begin.size() - 8));
                       parsed = ParseStored(value, heads.at(read), "the end of a partition");
                       return parsed.ok();
                     });
    if (status.ok()) status = parsed;
    if (status.ok()) {
      heads_ = std::move(heads);
    } else {
      heads_ = status;
    }
    ++head_reads_;
  }
  if (!heads_.ok()) return heads_.status();
  return heads_->at(number);
}

class TableJournal::PartitionTail final : public JournalTail {
 public:
  PartitionTail(TableJournal& journal, uint32_t number, uint64_t after,
                std::optional<std::string> hash, int64_t epoch)
      : journal_(journal),
        table_(*journal.table_),
        number_(number),
        read_(after),
        hash_(std::move(hash)),
        epoch_(epoch),
        opened_after_(journal.HeadReads()) {}

  absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    while (true) {
      const uint64_t commits = table_.AwaitCommit(0, absl::ZeroDuration());
      if (commits > seen_) {
        absl::StatusOr<std::vector<SequencedEntry>> entries = Read(commits);
        if (!entries.ok() || !entries->empty()) return entries;
        // What was committed while it was read is looked for again.
        seen_ = commits;
      }
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return std::vector<SequencedEntry>();
      table_.AwaitCommit(seen_, left);
    }
  }
  int64_t epoch() const override { return epoch_; }
  uint64_t pending() const override { return pending_; }

 private:
  absl::StatusOr<std::vector<SequencedEntry>> Read(uint64_t commits) {
    const absl::StatusOr<storage::PartitionHead> head =
        journal_.HeadAfter(commits, opened_after_, number_);
    if (!head.ok()) return head.status();
    pending_ = 0;
    std::vector<SequencedEntry> entries;
    if (head->sequence() < read_ ||
        (head->sequence() == read_ && hash_.has_value() && *hash_ != head->hash()))
      return OfAnotherLog();
    if (head->sequence() == read_) return entries;
    const absl::Status dropped =
        absl::OutOfRangeError(absl::StrCat("entries after ", read_, " are no longer held"));
    absl::Status failed;
    size_t bytes = 0;
    std::optional<std::string> hash = hash_;
    const std::string begin = table_keys::Entry(number_, read_ + 1);
    // Not beyond that end: the next one that is asked for may have been read before.
    const KeyRange range{begin, table_keys::Entry(number_, head->sequence() + 1)};
    absl::Status status = table_.Scan(range, [&](absl::string_view key, absl::string_view value) {
      storage::LogEntry held;
      const uint64_t sequence = table_keys::ReadNumber(key.substr(begin.size() - 8));
      failed = sequence == read_ + entries.size() + 1 ? table_rows::ParseEntry(value, held, hash)
                                                      : dropped;
      if (!failed.ok()) return false;
      bytes += value.size();
      entries.push_back(ToEntry(sequence, std::move(held)));
      return bytes < kMostEntryBytesAtOnce;
    });
    if (status.ok()) status = failed;
    if (!status.ok()) return status;
    // All may have been dropped.
    if (entries.empty()) return dropped;
    read_ = entries.back().sequence;
    hash_ = std::move(hash);
    epoch_ = entries.back().epoch;
    if (head->sequence() > read_) pending_ = head->sequence() - read_;
    return entries;
  }
  static SequencedEntry ToEntry(uint64_t sequence, storage::LogEntry held) {
    SequencedEntry entry;
    entry.sequence = sequence;
    entry.time =
        absl::FromUnixSeconds(held.time().seconds()) + absl::Nanoseconds(held.time().nanos());
    entry.epoch = held.epoch();
    if (held.has_take_over()) entry.take_over = std::move(*held.mutable_take_over());
    entry.entry.model_id = held.model_id();
    entry.entry.records.assign(std::make_move_iterator(held.mutable_records()->begin()),
                               std::make_move_iterator(held.mutable_records()->end()));
    entry.entry.counters = std::move(*held.mutable_counters());
    entry.entry.positions.assign(std::make_move_iterator(held.mutable_positions()->begin()),
                                 std::make_move_iterator(held.mutable_positions()->end()));
    return entry;
  }

  TableJournal& journal_;
  Table& table_;
  const uint32_t number_;
  uint64_t read_;
  // The hash of the last entry read; absent if that was not held any more when the tail began.
  std::optional<std::string> hash_;
  // The table's commits before the last read that found nothing.
  uint64_t seen_ = 0;
  int64_t epoch_;
  // The reads of ends before it was opened, which may be older than where it began.
  const uint64_t opened_after_;
  uint64_t pending_ = 0;
};

absl::StatusOr<std::unique_ptr<JournalTail>> TableJournal::Tail(uint32_t number, uint64_t after) {
  if (options_.held_bytes == 0)
    return absl::FailedPreconditionError("this journal holds no entries");
  const absl::StatusOr<storage::PartitionHead> head = ReadHead(*table_, number);
  if (!head.ok()) return head.status();
  if (after > head->sequence()) return OfAnotherLog();
  std::optional<std::string> hash;
  if (head->sequence() == after || after == 0) {
    hash = after == 0 ? "" : head->hash();
  } else {
    const absl::StatusOr<std::optional<std::string>> last =
        table_->Get(table_keys::Entry(number, after));
    if (!last.ok()) return last.status();
    if (last->has_value()) hash = (*last)->substr(0, kHashBytes);
  }
  return std::make_unique<PartitionTail>(*this, number, after, std::move(hash), head->epoch());
}

absl::Status TableJournal::Verify() {
  for (uint32_t number = 0; number <= partition_count_; ++number) {
    const std::string begin = table_keys::Entry(number, 0);
    const KeyRange ranges[] = {table_keys::Only(table_keys::Head(number)),
                               {begin, table_keys::Entry(number, UINT64_MAX)}};
    const absl::StatusOr<std::unique_ptr<TableReader>> reader = table_->Freeze(ranges);
    if (!reader.ok()) return reader.status();
    const absl::StatusOr<storage::PartitionHead> head = ReadHead(**reader, number);
    if (!head.ok()) return head.status();
    const auto damaged = [&](uint64_t sequence, absl::string_view what) {
      return absl::DataLossError(absl::StrCat(
          "journal: entry ", sequence, " of ", number == names() ? "the names" : "partition ",
          number == names() ? "" : absl::StrCat(number), " ", what));
    };
    uint64_t sequence = 0;
    std::optional<std::string> hash = head->hash_before_held();
    absl::Status failed;
    absl::Status status =
        (*reader)->Scan(ranges[1], [&](absl::string_view key, absl::string_view value) {
          const uint64_t next = table_keys::ReadNumber(key.substr(begin.size() - 8));
          storage::LogEntry entry;
          storage::NamesEntry names_entry;
          google::protobuf::MessageLite& parsed =
              number == names() ? static_cast<google::protobuf::MessageLite&>(names_entry) : entry;
          if (sequence != 0 && next != sequence + 1) {
            failed = damaged(sequence + 1, "is missing");
          } else if (!table_rows::ParseEntry(value, parsed, hash).ok()) {
            failed = damaged(next, "is damaged, or does not follow the one before");
          }
          sequence = next;
          return failed.ok();
        });
    if (status.ok()) status = failed;
    if (!status.ok()) return status;
    const bool are_all_dropped = sequence == 0 && head->held_bytes() == 0;
    if (!are_all_dropped && (sequence != head->sequence() || hash != head->hash()))
      return damaged(head->sequence(), "is not the one that its end names");
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
