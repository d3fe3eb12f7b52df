#include "core/journal/rocksdb_journal.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/disk_reserve.h"
#include "core/journal/keys.h"
#include "core/journal/stored_message.h"

namespace perceptrond {
namespace {

// Asking the file system before each batch took a twelfth of the committer's time.
constexpr int64_t kSpaceCheckNanos = 100'000'000;

// Of a batch that was written: RocksDB leaves the number of the first key at its beginning. The
// latest number of the database could be that of a write past the log.
uint64_t LastSequenceOf(const rocksdb::WriteBatch& batch) {
  uint64_t first = 0;
  std::memcpy(&first, batch.Data().data(), sizeof(first));
  return first + static_cast<uint64_t>(batch.Count()) - 1;
}

}  // namespace

std::shared_ptr<rocksdb::DB> RocksDbJournal::db() const {
  ReaderMutexLock lock(&db_mutex_);
  return db_;
}

absl::Status RocksDbJournal::CheckSpace(size_t bytes) {
  const int64_t now = absl::GetCurrentTimeNanos();
  const uint64_t unchecked = unchecked_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const int64_t age = now - checked_at_.load(std::memory_order_relaxed);
  if (unchecked < options_.reserve_bytes / 64 && age >= 0 && age < kSpaceCheckNanos)
    return absl::OkStatus();
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options_.directory, error);
  if (error || space.available >= options_.reserve_bytes) {
    unchecked_bytes_.store(0, std::memory_order_relaxed);
    checked_at_.store(now, std::memory_order_relaxed);
    // A deletion may have used it.
    if (!error) MakeDiskReserve(options_.directory);
    return absl::OkStatus();
  }
  // The next write asks again.
  checked_at_.store(0, std::memory_order_relaxed);
  return absl::UnavailableError(
      absl::StrCat("journal: the disk of ", options_.directory, " has ", space.available >> 20,
                   " MiB free, and ", options_.reserve_bytes >> 20,
                   " MiB are needed to write safely: free some space, or delete models"));
}

absl::Status RocksDbJournal::CheckNotFailed() const {
  if (!failed_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::UnavailableError(
      "journal: an earlier write failed; check the disk, then restart the "
      "server");
}

absl::Status RocksDbJournal::OnWritten(const rocksdb::Status& status) {
  if (!status.ok()) failed_.store(true, std::memory_order_relaxed);
  return ToAbsl(status);
}

absl::Status RocksDbJournal::Write(rocksdb::WriteBatch& batch, Through through) {
  if (absl::Status status = CheckNotFailed(); !status.ok()) return status;
  if (is_read_only_.load(std::memory_order_acquire)) {
    const absl::Status status = LeaveReadOnly(batch.HasDeleteRange());
    if (!status.ok()) return status;
  }
  if (!batch.HasDeleteRange()) {
    if (absl::Status status = CheckSpace(batch.GetDataSize()); !status.ok()) return status;
  }
  return WriteUnchecked(batch, through);
}

absl::Status RocksDbJournal::WriteUnchecked(rocksdb::WriteBatch& batch, Through through) {
  rocksdb::WriteOptions options;
  options.sync = through == Through::kSyncedLog && !options_.never_sync;
  options.disableWAL = through == Through::kTable;
  absl::Status status = OnWritten(db()->Write(options, &batch));
  if (status.ok() && through != Through::kTable) AdvanceOver(batch, options.sync);
  return status;
}

void RocksDbJournal::AdvanceOver(const rocksdb::WriteBatch& batch, bool synced) {
  const uint64_t last = LastSequenceOf(batch);
  uint64_t logged = logged_.load();
  while (logged < last && !logged_.compare_exchange_weak(logged, last)) {
  }
  if (watermark_ != nullptr) watermark_->Advance(last, synced);
}

absl::Status RocksDbJournal::SyncLog() {
  const uint64_t logged = logged_.load();
  absl::Status status = OnWritten(logs_.Sync());
  if (status.ok() && watermark_ != nullptr) watermark_->Advance(logged, /*synced=*/true);
  return status;
}

absl::Status RocksDbJournal::Verify() { return ToAbsl(db()->VerifyChecksum()); }

absl::StatusOr<bool> RocksDbJournal::Get(const std::string& key, std::string& value) {
  // The model that is loaded holds what was read. In the cache its blocks would only outlive their
  // table.
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const rocksdb::Status status = db()->Get(options, key, &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return ToAbsl(status);
  return true;
}

absl::StatusOr<bool> RocksDbJournal::GetMessage(const std::string& key,
                                                google::protobuf::MessageLite& message) {
  std::string value;
  absl::StatusOr<bool> found = Get(key, value);
  if (!found.ok() || !*found) return found;
  if (absl::Status status = ParseStored(value, message, message.GetTypeName()); !status.ok())
    return status;
  return true;
}

absl::Status RocksDbJournal::Ask(const ModelGuard& guard) {
  return AskGuard(
      guard, [&](absl::string_view name) { return Find(name); },
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(headers_mutex_) { return CountLocked(); });
}

absl::Status RocksDbJournal::CreateModel(storage::ModelHeader& header, const ModelGuard& guard) {
  MutexLock lock(&headers_mutex_);
  const std::string key = keys::Header(header.model().name());
  std::string value;
  absl::StatusOr<bool> found = Get(key, value);
  if (!found.ok()) return found.status();
  if (*found) return absl::AlreadyExistsError(absl::StrCat(header.model().name(), " exists"));
  if (absl::Status status = Ask(guard); !status.ok()) return status;
  rocksdb::WriteBatch batch;
  const absl::StatusOr<uint64_t> id = NextId(batch);
  if (!id.ok()) return id.status();
  header.set_id(*id);
  if (absl::Status status = SerializeStored(header, value); !status.ok()) return status;
  batch.Put(key, value);
  batch.Put(keys::Alive(header.id()), "");
  absl::Status status = Write(batch, Through::kSyncedLog);
  if (status.ok()) AddToCount(1);
  return status;
}

absl::StatusOr<storage::ModelHeader> RocksDbJournal::Find(absl::string_view name) {
  storage::ModelHeader header;
  absl::StatusOr<bool> found = GetMessage(keys::Header(name), header);
  if (!found.ok()) return found.status();
  if (!*found) return absl::NotFoundError(absl::StrCat("there is no model ", name));
  return header;
}

absl::Status RocksDbJournal::Replace(const storage::ModelHeader& header,
                                     const storage::ModelHeader& before) {
  MutexLock lock(&headers_mutex_);
  absl::StatusOr<storage::ModelHeader> found = Find(header.model().name());
  if (!found.ok()) return found.status();
  if (found->id() != header.id())
    return absl::NotFoundError(absl::StrCat("there is no such model ", header.model().name()));
  if (!IsSame(*found, before)) return ChangedByAnother(header.model().name());
  std::string bytes;
  if (absl::Status status = SerializeStored(header, bytes); !status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Put(keys::Header(header.model().name()), bytes);
  return Write(batch, Through::kSyncedLog);
}

absl::Status RocksDbJournal::DeleteModel(absl::string_view name, const ModelGuard& guard) {
  MutexLock lock(&headers_mutex_);
  absl::StatusOr<storage::ModelHeader> header = Find(name);
  if (!header.ok()) return header.status();
  if (const std::vector<Alias> aliases = aliases_.AllOf(name); !aliases.empty())
    return NamedBy(aliases.front().name(), name);
  if (absl::Status status = Ask(guard); !status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Delete(keys::Header(name));
  batch.Delete(keys::Alive(header->id()));
  for (const char kind : {'n', 'p', 'r', 's', 'c', 'k', 'v', 'w'}) {
    const std::string prefix = keys::OfModel(kind, header->id());
    batch.DeleteRange(prefix, keys::EndOf(prefix));
  }
  absl::Status status = Write(batch, Through::kSyncedLog);
  if (status.ok()) AddToCount(-1);
  return status;
}

absl::StatusOr<std::vector<storage::ModelHeader>> RocksDbJournal::List(absl::string_view after,
                                                                       size_t limit) {
  std::vector<storage::ModelHeader> page;
  const std::string end = keys::EndOf("h");
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  const std::string start = keys::Header(after);
  for (it->Seek(start); it->Valid() && page.size() < limit; it->Next()) {
    if (it->key() == rocksdb::Slice(start)) continue;
    if (absl::Status status = ParseStored({it->value().data(), it->value().size()},
                                          page.emplace_back(), "a model's header");
        !status.ok())
      return status;
  }
  if (!it->status().ok()) return ToAbsl(it->status());
  return page;
}

absl::StatusOr<uint64_t> RocksDbJournal::Count() {
  if (const int64_t count = count_.load(std::memory_order_relaxed); count >= 0)
    return static_cast<uint64_t>(count);
  // No model is created or deleted while they are counted.
  MutexLock lock(&headers_mutex_);
  return CountLocked();
}

void RocksDbJournal::AddToCount(int64_t difference) {
  const int64_t count = count_.load(std::memory_order_relaxed);
  if (count >= 0) count_.store(count + difference, std::memory_order_relaxed);
}

absl::StatusOr<uint64_t> RocksDbJournal::CountLocked() {
  if (const int64_t count = count_.load(std::memory_order_relaxed); count >= 0)
    return static_cast<uint64_t>(count);
  const std::string end = keys::EndOf("h");
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  int64_t count = 0;
  for (it->Seek("h"); it->Valid(); it->Next()) ++count;
  if (!it->status().ok()) return ToAbsl(it->status());
  count_.store(count, std::memory_order_relaxed);
  return static_cast<uint64_t>(count);
}

absl::StatusOr<CommitOutcome> RocksDbJournal::Commit(std::span<const JournalEntry> entries,
                                                     const CommitOptions& options) {
  if (entries.empty()) return absl::InvalidArgumentError("a commit has an entry");
  rocksdb::WriteBatch batch;
  std::string bytes;
  for (const JournalEntry& entry : entries) {
    for (const storage::UpdateRecord& record : entry.records) {
      if (absl::Status status = SerializeStored(record, bytes); !status.ok()) return status;
      batch.Put(keys::Record(entry.model_id, LastRevision(record)), bytes);
      if (record.has_restored_state() || record.has_document_frequencies())
        RaiseFormat(batch, keys::kFormatVersion);
    }
    if (absl::Status status = SerializeStored(entry.counters, bytes); !status.ok()) return status;
    batch.Put(keys::Counters(entry.model_id), bytes);
    for (const storage::ProducerPosition& position : entry.positions) {
      if (absl::Status status = SerializeStored(position, bytes); !status.ok()) return status;
      batch.Put(keys::Position(entry.model_id, position.id()), bytes);
    }
    for (const uint64_t number : entry.learned_predictions)
      batch.Delete(keys::KeptPrediction(entry.model_id, number));
  }
  MutexLock lock(&commit_mutex_);
  if (options.expected.value_or(last_commit_) != last_commit_)
    return CommitOutcome{0, /*stale=*/true, last_commit_};
  const absl::Status written = Write(batch, options.sync ? Through::kSyncedLog : Through::kLog);
  if (!written.ok()) return written;
  const bool updates = std::any_of(entries.begin(), entries.end(), [](const JournalEntry& entry) {
    return !entry.records.empty();
  });
  if (updates && (!options.sync || options_.never_sync)) watermark_->NoteUnsyncedUpdates();
  last_commit_ = LastSequenceOf(batch);
  recent_->Add(entries, last_commit_, /*epoch=*/0);
  return CommitOutcome{entries.size(), /*stale=*/false, last_commit_};
}

absl::StatusOr<uint64_t> RocksDbJournal::LastSequence(uint32_t /*partition*/) {
  MutexLock lock(&commit_mutex_);
  return last_commit_;
}

absl::StatusOr<std::unique_ptr<JournalTail>> RocksDbJournal::Tail(uint32_t /*partition*/,
                                                                  uint64_t after) {
  return TailOf(recent_, after);
}

absl::Status RocksDbJournal::Sync() {
  if (absl::Status status = CheckNotFailed(); !status.ok()) return status;
  return is_read_only_.load(std::memory_order_acquire) ? absl::OkStatus() : SyncLog();
}

absl::StatusOr<storage::Counters> RocksDbJournal::LoadCounters(uint64_t model_id) {
  storage::Counters counters;
  absl::StatusOr<bool> found = GetMessage(keys::Counters(model_id), counters);
  if (!found.ok()) return found.status();
  return counters;
}

absl::StatusOr<CommittedState> RocksDbJournal::LoadCommittedState(uint64_t model_id) {
  absl::StatusOr<storage::Counters> counters = LoadCounters(model_id);
  if (!counters.ok()) return counters.status();
  CommittedState state{*std::move(counters), {}};
  const std::string prefix = keys::OfModel('p', model_id);
  const std::string end = keys::EndOf(prefix);
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  for (it->Seek(prefix); it->Valid(); it->Next()) {
    absl::Status status = ParseStored({it->value().data(), it->value().size()},
                                      state.positions.emplace_back(), "a producer's position");
    if (!status.ok()) return status;
  }
  if (!it->status().ok()) return ToAbsl(it->status());
  return state;
}

absl::Status RocksDbJournal::Replay(uint64_t model_id, uint64_t after_revision,
                                    const ReplayCallback& replay) {
  const std::string end = keys::EndOf(keys::OfModel('r', model_id));
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  options.fill_cache = false;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  storage::UpdateRecord record;
  for (it->Seek(keys::Record(model_id, after_revision + 1)); it->Valid(); it->Next()) {
    if (absl::Status status =
            ParseStored({it->value().data(), it->value().size()}, record, "an update record");
        !status.ok())
      return status;
    if (absl::Status status = replay(record, it->value().size()); !status.ok()) return status;
  }
  return ToAbsl(it->status());
}

absl::Status RocksDbJournal::DropAfter(uint64_t model_id, uint64_t revision) {
  // A model whose write failed must load even while nothing can be written.
  bool leftovers = false;
  const auto found = [&](const storage::UpdateRecord&, size_t) {
    leftovers = true;
    return absl::CancelledError();
  };
  const absl::Status looked = Replay(model_id, revision, found);
  if (!leftovers) return looked;
  rocksdb::WriteBatch batch;
  batch.DeleteRange(keys::Record(model_id, revision + 1),
                    keys::EndOf(keys::OfModel('r', model_id)));
  return Write(batch, Through::kSyncedLog);
}

}  // namespace perceptrond
