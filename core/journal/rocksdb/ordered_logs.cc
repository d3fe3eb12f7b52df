#include "core/journal/rocksdb/ordered_logs.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/sync/mutex.h"

namespace perceptrond {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// A log is a sequence of blocks, and a block one of records: a checksum of 4 bytes, the length in
// 2, the type in one, and the content. No record spans two blocks.
// https://github.com/facebook/rocksdb/wiki/Write-Ahead-Log-File-Format
constexpr size_t kBlock = 32 << 10;
constexpr size_t kLength = 4;
constexpr size_t kType = 6;
constexpr size_t kHeader = 7;
// RocksDB skips records of type 0, and takes this one for damage.
constexpr char kNoType = 0x7f;

// Where in this block a record of zeros begins, if there is one.
std::optional<size_t> FindZeros(const char* block, size_t size) {
  for (size_t at = 0; at + kHeader <= size;) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(block[at + i]); };
    const size_t length = byte(kLength) + (size_t{byte(kLength + 1)} << 8);
    if (length == 0 && byte(kType) == 0) return at;
    at += kHeader + length;
  }
  return std::nullopt;
}

bool IsLog(const std::string& path) { return absl::EndsWith(path, ".log"); }

bool IsZero(const char* bytes, size_t size) {
  return std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; });
}

}  // namespace

class OrderedLogs::Reader final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  // `again` opens the same file.
  using Opener = std::function<IOStatus(std::unique_ptr<rocksdb::FSSequentialFile>&)>;

  Reader(std::unique_ptr<rocksdb::FSSequentialFile> file, Opener again)
      : FSSequentialFileOwnerWrapper(std::move(file)), again_(std::move(again)) {}

  IOStatus Read(size_t size, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    IOStatus status = FSSequentialFileOwnerWrapper::Read(size, options, result, scratch, debug);
    if (!status.ok()) return status;
    if (result->data() != scratch) std::memcpy(scratch, result->data(), result->size());
    *result = Slice(scratch, result->size());
    // RocksDB reads whole blocks.
    for (size_t at = 0; at_ % kBlock == 0 && at < result->size() && status.ok(); at += kBlock)
      status = Check(scratch + at, std::min(kBlock, result->size() - at), at_ + at);
    at_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t size) override {
    at_ += size;
    return FSSequentialFileOwnerWrapper::Skip(size);
  }

 private:
  // Makes zeros that something follows a damaged record. The block begins at `offset` in the file.
  IOStatus Check(char* block, size_t size, uint64_t offset) const {
    const std::optional<size_t> zeros = FindZeros(block, size);
    if (!zeros.has_value()) return IOStatus::OK();
    bool to_the_end = IsZero(block + *zeros, size - *zeros);
    if (to_the_end) {
      IOStatus status = IsZeroFrom(offset + size, to_the_end);
      if (!status.ok()) return status;
    }
    if (!to_the_end) block[*zeros + kType] = kNoType;
    return IOStatus::OK();
  }
  // Whether the file has nothing but zeros from this offset on.
  IOStatus IsZeroFrom(uint64_t offset, bool& zero) const {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    IOStatus status = again_(file);
    if (status.ok()) status = file->Skip(offset);
    std::vector<char> scratch(kBlock);
    Slice read;
    do {
      if (status.ok()) status = file->Read(kBlock, IOOptions(), &read, scratch.data(), nullptr);
      if (!status.ok()) return status;
      zero = IsZero(read.data(), read.size());
    } while (zero && !read.empty());
    return status;
  }

  const Opener again_;
  uint64_t at_ = 0;
};

// The log that is being written.
class OrderedLogs::CurrentLog {
 public:
  IOStatus Sync() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return file_ == nullptr ? IOStatus::OK() : file_->Sync(IOOptions(), nullptr);
  }
  IOStatus SyncAndReplace(rocksdb::FSWritableFile* next) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    IOStatus status;
    if (file_ != nullptr) status = file_->Sync(IOOptions(), nullptr);
    if (status.ok()) file_ = next;
    return status;
  }
  // The file is about to be closed.
  void Remove(const rocksdb::FSWritableFile* file) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (file_ == file) file_ = nullptr;
  }

 private:
  Mutex mutex_;
  rocksdb::FSWritableFile* file_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

class OrderedLogs::Writer final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Writer(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<CurrentLog> current)
      : FSWritableFileOwnerWrapper(std::move(file)), current_(std::move(current)) {}
  ~Writer() override { current_->Remove(target()); }

  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    current_->Remove(target());
    return FSWritableFileOwnerWrapper::Close(options, debug);
  }

 private:
  const std::shared_ptr<CurrentLog> current_;
};

class OrderedLogs::Files final : public rocksdb::FileSystemWrapper {
 public:
  Files(const std::shared_ptr<rocksdb::FileSystem>& base, std::shared_ptr<CurrentLog> current)
      : FileSystemWrapper(base), current_(std::move(current)) {}
  static const char* kClassName() { return "OrderedLogs"; }
  const char* Name() const override { return kClassName(); }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    IOStatus status = target()->NewSequentialFile(path, options, file, debug);
    if (!status.ok() || !IsLog(path)) return status;
    const auto again = [this, path, options](std::unique_ptr<rocksdb::FSSequentialFile>& file) {
      return target()->NewSequentialFile(path, options, &file, nullptr);
    };
    *file = std::make_unique<Reader>(std::move(*file), again);
    return status;
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(path, options, file, debug);
    if (!status.ok() || !IsLog(path)) return status;
    status = SyncDirectoryOf(path, options.io_options, debug);
    if (status.ok()) status = current_->SyncAndReplace(file->get());
    if (status.ok()) *file = std::make_unique<Writer>(std::move(*file), current_);
    return status;
  }

 private:
  // A file that is synced can be lost with its name.
  IOStatus SyncDirectoryOf(const std::string& path, const IOOptions& options,
                           IODebugContext* debug) {
    const std::string name = path.substr(0, path.find_last_of('/'));
    std::unique_ptr<rocksdb::FSDirectory> directory;
    IOStatus status = target()->NewDirectory(name, options, &directory, debug);
    if (status.ok()) status = directory->FsyncWithDirOptions(options, debug, {});
    return status;
  }

  const std::shared_ptr<CurrentLog> current_;
};

// But for its files, the environment is RocksDB's default one.
OrderedLogs::OrderedLogs(rocksdb::Env* base)
    : current_(std::make_shared<CurrentLog>()),
      env_(rocksdb::NewCompositeEnv(std::make_shared<Files>(base->GetFileSystem(), current_))) {}

OrderedLogs::~OrderedLogs() = default;

rocksdb::Status OrderedLogs::Sync() { return current_->Sync(); }

}  // namespace perceptrond
