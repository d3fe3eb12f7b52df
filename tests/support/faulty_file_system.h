// A file system for RocksDB that fails, tears or delays a chosen write, and on which the power can
// fail: then any subset of the pages that were not synced is lost, and the latest changes of
// directories. Those are lost in order, as on file systems with a journal; RocksDB relies on it.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/sync/mutex.h"

namespace perceptrond::testing {

// Files lie in the real file system, so that they can be read in every way; beside them it keeps
// what a power failure would leave. Each change of a file or of a directory is a boundary, and each
// fsync.
//
// Thread contract: safe for any number of threads. PowerFailure is called while nobody uses files.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  enum class Fate {
    kWorks,
    // Nothing is changed, and it is an error. Once.
    kFails,
    // Half of the bytes are written, and it is an error; from then on everything fails.
    kTears,
    // It fails, and everything after it: the device is gone.
    kIsTheLast,
    // It takes long, while other threads go on.
    kDelays,
  };

  FaultyFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  static const char* kClassName() { return "FaultyFileSystem"; }
  const char* Name() const override { return kClassName(); }

  // The fate of the boundary of that number, from 0. A fate of another one is forgotten.
  void SetFate(uint64_t boundary, Fate fate) ABSL_LOCKS_EXCLUDED(mutex_);
  // Boundaries so far.
  uint64_t boundaries() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves in the file system what a power failure at this moment might: what was synced, and of the
  // rest whatever the random numbers choose. All that was written counts as synced afterwards, and
  // nothing fails any more.
  void PowerFailure(std::mt19937& random) ABSL_LOCKS_EXCLUDED(mutex_);

  // The device is there again, as it was left.
  void Recover() ABSL_LOCKS_EXCLUDED(mutex_);

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  // For the files of this file system.
  struct Inode {
    std::string synced;
    std::string written;
  };
  // What becomes of the next boundary.
  Fate Next() ABSL_LOCKS_EXCLUDED(mutex_);
  void Change(const std::function<void()>& change) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    change();
  }
  // Every entry is on disk.
  void SyncDirectory() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Entries = std::map<std::string, std::shared_ptr<Inode>>;

  // Makes a change of the directory: each path gets an inode, or none (null).
  void ChangeEntries(std::vector<std::pair<std::string, std::shared_ptr<Inode>>> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The inode of a path, read from the real file if it is not known yet.
  std::shared_ptr<Inode> Find(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string Survivor(const Inode& inode, std::mt19937& random);

  mutable Mutex mutex_;
  uint64_t boundaries_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t chosen_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  Fate fate_ ABSL_GUARDED_BY(mutex_) = Fate::kWorks;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  // By path: as they are, and as they are on disk.
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  Entries synced_entries_ ABSL_GUARDED_BY(mutex_);
  // The changes that are not on disk, in order.
  std::vector<std::vector<std::pair<std::string, std::shared_ptr<Inode>>>> unsynced_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond::testing
