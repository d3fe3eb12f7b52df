// How far a journal has been written, in a file of its own beside the log. RocksDB takes a log, or an
// index of its tables, that ends early for one that a crash cut off; with this the ends are known.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sync/mutex.h"

namespace rocksdb {
class DB;
class Env;
class RandomRWFile;
}  // namespace rocksdb

namespace perceptrond {

// Where RocksDB's index of its tables ends, the file MANIFEST-number. It only grows, and one with a higher number has
// all that was in those before.
struct IndexEnd {
  uint64_t number = 0;
  uint64_t bytes = 0;

  auto operator<=>(const IndexEnd&) const = default;

  static IndexEnd Of(rocksdb::DB& db);
  // Of the index that the directory's database would be opened with. Zeros if it has none, which RocksDB refuses.
  static IndexEnd In(rocksdb::Env* env, const std::string& directory);
};

// Sequence numbers are RocksDB's: each key that is written or deleted gets the next one.
struct Watermark {
  // The journal's id.
  std::string id;
  // The last number in the log, and the last that is known to be on disk.
  uint64_t written = 0;
  uint64_t synced = 0;
  // The boot of the machine in which `written` was reached. Until the next boot the operating
  // system keeps what was written, also after the server was killed.
  std::string boot_id;
  // Updates were written, and may have been acknowledged, before they were on disk. A power failure
  // may have taken them, whatever `written` says: it takes the latest watermarks, too.
  bool unsynced_updates = false;
  // The journal was closed, and its logs then had this many bytes.
  bool closed = false;
  uint64_t log_bytes = 0;
  // Reached by the index.
  IndexEnd index;

  // The number that the journal must have reached when it is opened in the boot `boot`.
  uint64_t required(const std::string& boot) const { return is_boot(boot) ? written : synced; }
  // Whether acknowledged updates may be missing then.
  bool may_lack_updates(const std::string& boot) const {
    return unsynced_updates && !closed && !is_boot(boot);
  }

 private:
  bool is_boot(const std::string& boot) const { return !boot.empty() && boot == boot_id; }
};

// Keeps the watermark of an open journal in the file "WATERMARK" of its directory. An update is one
// write without fsync: a power failure may bring back an earlier watermark, which claims less. The
// file has two places that are written in turn, each with a checksum, so that one is always whole.
//
// Thread contract: safe for any number of threads.
class WatermarkFile {
 public:
  // The watermark in the directory; absent if there is none, or none that is whole. UNAVAILABLE if
  // the file cannot be read.
  static absl::StatusOr<std::optional<Watermark>> Read(rocksdb::Env* env,
                                                       const std::string& directory);
  // Replaces the directory's watermark, durably. UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<WatermarkFile>> Create(rocksdb::Env* env,
                                                               const std::string& directory,
                                                               const Watermark& watermark);
  ~WatermarkFile();

  // Raises `written` to `sequence`, and with `synced` that too: then everything up to it must be on
  // disk. The file is synced after NoteLogSwitch alone. A failure leaves an earlier watermark, and
  // ends the updates.
  void Advance(uint64_t sequence, bool synced) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes, durably and once, Watermark::unsynced_updates. To be called before they are
  // acknowledged.
  void NoteUnsyncedUpdates() ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises `index`. Called by RocksDB's threads when tables came or went, before it deletes any.
  void NoteIndex(const IndexEnd& index) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the next synced Advance sync the file. Called by RocksDB's threads when they begin a log.
  void NoteLogSwitch() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes, durably, that the journal was closed with everything on disk.
  void Close(uint64_t log_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t written() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  WatermarkFile(std::unique_ptr<rocksdb::RandomRWFile> file, Watermark watermark);
  void Write(bool sync) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<rocksdb::RandomRWFile> file_;
  mutable Mutex mutex_;
  Watermark watermark_ ABSL_GUARDED_BY(mutex_);
  uint64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool log_switched_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

// The kernel's id of this boot; empty if it has none.
std::string BootId();

}  // namespace perceptrond
