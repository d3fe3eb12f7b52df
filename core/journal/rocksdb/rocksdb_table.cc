#include "core/journal/rocksdb/rocksdb_table.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/rocksdb/disk_reserve.h"

namespace perceptrond {
namespace {

// Asking the file system before each batch took a twelfth of the committer's time.
constexpr int64_t kSpaceCheckNanos = 100'000'000;

// Takes a batch that was written: RocksDB leaves the number of the first key at its beginning.
uint64_t LastSequenceOf(const rocksdb::WriteBatch& batch) {
  uint64_t first = 0;
  std::memcpy(&first, batch.Data().data(), sizeof(first));
  return first + static_cast<uint64_t>(batch.Count()) - 1;
}

rocksdb::Slice SliceOf(absl::string_view bytes) { return {bytes.data(), bytes.size()}; }
absl::string_view ViewOf(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

bool IsOneKey(const KeyRange& range) {
  return range.end.size() == range.begin.size() + 1 && range.end.back() == '\0' &&
         range.end.compare(0, range.begin.size(), range.begin) == 0;
}

// A null snapshot: as it is now.
rocksdb::Status ReadRow(rocksdb::DB& db, const rocksdb::Snapshot* snapshot, absl::string_view key,
                        std::optional<std::string>& value) {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  value.emplace();
  const rocksdb::Status status = db.Get(options, SliceOf(key), &*value);
  if (!status.ok()) value.reset();
  return status.IsNotFound() ? rocksdb::Status::OK() : status;
}

rocksdb::Status ScanRows(rocksdb::DB& db, const rocksdb::Snapshot* snapshot, const KeyRange& range,
                         TableReader::OnRow on_row) {
  const rocksdb::Slice end(range.end);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  options.iterate_upper_bound = &end;
  // A model that is loaded holds what was read: in the cache it would only displace rows that are read again.
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(db.NewIterator(options));
  for (it->Seek(range.begin); it->Valid(); it->Next())
    if (!on_row(ViewOf(it->key()), ViewOf(it->value()))) break;
  return it->status();
}

}  // namespace

class RocksDbTable::Frozen final : public TableReader {
 public:
  explicit Frozen(std::shared_ptr<rocksdb::DB> db)
      : db_(std::move(db)), snapshot_(db_->GetSnapshot()) {}
  ~Frozen() override { db_->ReleaseSnapshot(snapshot_); }

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override {
    std::optional<std::string> value;
    const rocksdb::Status status = ReadRow(*db_, snapshot_, key, value);
    if (!status.ok()) return ToAbsl(status);
    return value;
  }
  absl::Status Scan(const KeyRange& range, OnRow on_row) override {
    return ToAbsl(ScanRows(*db_, snapshot_, range, on_row));
  }

 private:
  const std::shared_ptr<rocksdb::DB> db_;
  const rocksdb::Snapshot* const snapshot_;
};

std::shared_ptr<rocksdb::DB> RocksDbTable::db() const {
  ReaderMutexLock lock(&db_mutex_);
  return db_;
}

absl::Status RocksDbTable::ToAbsl(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption())
    return absl::DataLossError(absl::StrCat("journal: ", status.ToString()));
  return absl::UnavailableError(absl::StrCat("journal: ", status.ToString()));
}

absl::StatusOr<std::optional<std::string>> RocksDbTable::Get(absl::string_view key) {
  std::optional<std::string> value;
  const rocksdb::Status status = ReadRow(*db(), nullptr, key, value);
  if (!status.ok()) return ToAbsl(status);
  return value;
}

absl::Status RocksDbTable::Scan(const KeyRange& range, OnRow on_row) {
  return ToAbsl(ScanRows(*db(), nullptr, range, on_row));
}

absl::StatusOr<std::unique_ptr<TableReader>> RocksDbTable::Freeze(
    std::span<const KeyRange> /*ranges*/) {
  return std::make_unique<Frozen>(db());
}

absl::StatusOr<bool> RocksDbTable::AreMet(const TableChange& change) {
  for (const TableChange::Condition& condition : change.conditions) {
    const absl::StatusOr<std::optional<std::string>> value = Get(condition.key);
    if (!value.ok()) return value.status();
    if (*value != condition.value) return false;
  }
  return true;
}

absl::StatusOr<bool> RocksDbTable::Commit(const TableChange& change, bool sync) {
  // It would double as it grows, and copy what it has each time.
  constexpr size_t kBytesBesideARow = 16;
  size_t bytes = 0;
  for (const TableRow& row : change.puts)
    bytes += row.key.size() + row.value.size() + kBytesBesideARow;
  rocksdb::WriteBatch batch(bytes);
  for (const KeyRange& range : change.deletions) {
    if (IsOneKey(range)) {
      batch.Delete(range.begin);
    } else {
      batch.DeleteRange(range.begin, range.end);
    }
  }
  for (const TableRow& row : change.puts) batch.Put(row.key, row.value);
  MutexLock lock(&commit_mutex_);
  absl::StatusOr<bool> met = AreMet(change);
  if (!met.ok() || !*met || batch.Count() == 0) return met;
  if (absl::Status status = Write(batch, sync); !status.ok()) return status;
  return true;
}

absl::Status RocksDbTable::CheckSpace(size_t bytes) {
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

absl::Status RocksDbTable::CheckNotFailed() const {
  if (!failed_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return absl::UnavailableError(
      "journal: an earlier write failed; check the disk, then restart the "
      "server");
}

absl::Status RocksDbTable::OnWritten(const rocksdb::Status& status) {
  if (!status.ok()) failed_.store(true, std::memory_order_relaxed);
  return ToAbsl(status);
}

absl::Status RocksDbTable::Write(rocksdb::WriteBatch& batch, bool sync) {
  if (absl::Status status = CheckNotFailed(); !status.ok()) return status;
  const bool is_deletion = batch.HasDeleteRange();
  if (is_read_only_.load(std::memory_order_acquire)) {
    if (absl::Status status = LeaveReadOnly(is_deletion); !status.ok()) return status;
  }
  if (!is_deletion) {
    if (absl::Status status = CheckSpace(batch.GetDataSize()); !status.ok()) return status;
  }
  return WriteUnchecked(batch, sync);
}

absl::Status RocksDbTable::WriteUnchecked(rocksdb::WriteBatch& batch, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync && !options_.never_sync;
  if (absl::Status status = OnWritten(db()->Write(options, &batch)); !status.ok()) return status;
  logged_ = LastSequenceOf(batch);
  if (watermark_ != nullptr) watermark_->Advance(logged_, options.sync);
  return absl::OkStatus();
}

absl::Status RocksDbTable::Sync() {
  if (absl::Status status = CheckNotFailed(); !status.ok()) return status;
  if (is_read_only_.load(std::memory_order_acquire)) return absl::OkStatus();
  const uint64_t logged = logged_.load();
  absl::Status status = OnWritten(logs_.Sync());
  if (status.ok() && watermark_ != nullptr) watermark_->Advance(logged, /*synced=*/true);
  return status;
}

void RocksDbTable::NoteUnsyncedUpdates() {
  if (watermark_ != nullptr) watermark_->NoteUnsyncedUpdates();
}

absl::Status RocksDbTable::Verify() { return ToAbsl(db()->VerifyChecksum()); }

}  // namespace perceptrond
