#include "tests/support/faulty_file_system.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

#include "absl/time/clock.h"

namespace perceptrond::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Fate = FaultyFileSystem::Fate;

constexpr size_t kPage = 4096;
constexpr absl::Duration kDelay = absl::Milliseconds(5);

IOStatus Injected() { return IOStatus::IOError("injected fault"); }

// Carries out a change with its fate. `part` does half of it.
IOStatus WithFate(Fate fate, const std::function<IOStatus()>& all,
                  const std::function<void()>& part = nullptr) {
  switch (fate) {
    case Fate::kWorks:
      return all();
    case Fate::kDelays:
      absl::SleepFor(kDelay);
      return all();
    case Fate::kTears:
      if (part) part();
      return Injected();
    default:
      return Injected();
  }
}

void WriteAt(std::string& content, uint64_t offset, const Slice& data) {
  if (content.size() < offset + data.size()) content.resize(offset + data.size());
  std::copy(data.data(), data.data() + data.size(), content.begin() + static_cast<long>(offset));
}

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem& system,
               std::shared_ptr<FaultyFileSystem::Inode> inode)
      : FSWritableFileOwnerWrapper(std::move(file)), system_(system), inode_(std::move(inode)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return WithFate(
        system_.Next(), [&] { return Add(data, options, debug); },
        [&] { Add(Slice(data.data(), data.size() / 2), options, debug); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    return WithFate(system_.Next(), [&] {
      IOStatus status = FSWritableFileOwnerWrapper::Truncate(size, options, debug);
      if (status.ok()) system_.Change([&] { inode_->written.resize(size); });
      return status;
    });
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return WithFate(system_.Next(), [&] {
      system_.Change([&] { inode_->synced = inode_->written; });
      return IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  IOStatus Add(const Slice& data, const IOOptions& options, IODebugContext* debug) {
    IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Flush(options, debug);
    if (status.ok()) system_.Change([&] { inode_->written.append(data.data(), data.size()); });
    return status;
  }

  FaultyFileSystem& system_;
  const std::shared_ptr<FaultyFileSystem::Inode> inode_;
};

class RandomRwFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRwFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, FaultyFileSystem& system,
               std::shared_ptr<FaultyFileSystem::Inode> inode)
      : FSRandomRWFileOwnerWrapper(std::move(file)), system_(system), inode_(std::move(inode)) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    const auto write = [&](const Slice& part) {
      IOStatus status = FSRandomRWFileOwnerWrapper::Write(offset, part, options, debug);
      if (status.ok()) system_.Change([&] { WriteAt(inode_->written, offset, part); });
      return status;
    };
    return WithFate(
        system_.Next(), [&] { return write(data); },
        [&] { write(Slice(data.data(), data.size() / 2)); });
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return WithFate(system_.Next(), [&] {
      system_.Change([&] { inode_->synced = inode_->written; });
      return IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  FaultyFileSystem& system_;
  const std::shared_ptr<FaultyFileSystem::Inode> inode_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> directory, FaultyFileSystem& system)
      : FSDirectoryWrapper(std::move(directory)), system_(system) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return WithFate(system_.Next(), [&] {
      system_.SyncDirectory();
      return IOStatus::OK();
    });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& /*how*/) override {
    return Fsync(options, debug);
  }

 private:
  FaultyFileSystem& system_;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void FaultyFileSystem::SetFate(uint64_t boundary, Fate fate) {
  MutexLock lock(&mutex_);
  chosen_ = boundary;
  fate_ = fate;
}

uint64_t FaultyFileSystem::boundaries() const {
  MutexLock lock(&mutex_);
  return boundaries_;
}

Fate FaultyFileSystem::Next() {
  MutexLock lock(&mutex_);
  const uint64_t boundary = boundaries_++;
  if (dead_) return Fate::kFails;
  if (boundary != chosen_) return Fate::kWorks;
  dead_ = fate_ == Fate::kTears || fate_ == Fate::kIsTheLast;
  return fate_;
}

std::shared_ptr<FaultyFileSystem::Inode> FaultyFileSystem::Find(const std::string& path) {
  std::shared_ptr<Inode>& inode = entries_[path];
  if (inode == nullptr) {
    const std::string content = ReadFile(path);
    inode = std::make_shared<Inode>(Inode{content, content});
    synced_entries_[path] = inode;
  }
  return inode;
}

void FaultyFileSystem::ChangeEntries(
    std::vector<std::pair<std::string, std::shared_ptr<Inode>>> change) {
  for (const auto& [path, inode] : change) {
    if (inode == nullptr) {
      entries_.erase(path);
    } else {
      entries_[path] = inode;
    }
  }
  unsynced_.push_back(std::move(change));
}

void FaultyFileSystem::SyncDirectory() {
  MutexLock lock(&mutex_);
  synced_entries_ = entries_;
  unsynced_.clear();
}

void FaultyFileSystem::Recover() {
  MutexLock lock(&mutex_);
  dead_ = false;
  chosen_ = UINT64_MAX;
}

std::string FaultyFileSystem::Survivor(const Inode& inode, std::mt19937& random) {
  const std::string& synced = inode.synced;
  const std::string& written = inode.written;
  if (synced == written) return synced;
  // The size is a change of its own: the file may be as long as any of its pages makes it.
  const size_t least = std::min(synced.size(), written.size());
  const size_t most = std::max(synced.size(), written.size());
  size_t size = most;
  if (random() % 2 == 0) size = least + random() % (most - least + 1);
  if (random() % 4 == 0 && written.size() >= synced.size()) size = synced.size();
  std::string content(size, '\0');
  for (size_t at = 0; at < size; at += kPage) {
    const std::string& from = random() % 2 == 0 ? written : synced;
    for (size_t i = at; i < std::min(size, at + kPage); ++i) {
      if (i < from.size()) content[i] = from[i];
    }
  }
  return content;
}

void FaultyFileSystem::PowerFailure(std::mt19937& random) {
  MutexLock lock(&mutex_);
  std::set<std::string> paths;
  for (const auto& [path, inode] : entries_) paths.insert(path);
  for (const auto& [path, inode] : synced_entries_) paths.insert(path);
  Entries left = synced_entries_;
  unsynced_.resize(random() % (unsynced_.size() + 1));
  for (const auto& change : unsynced_) {
    for (const auto& [path, inode] : change) {
      paths.insert(path);
      inode == nullptr ? (void)left.erase(path) : (void)(left[path] = inode);
    }
  }
  unsynced_.clear();
  // Two entries may be of one inode, as after half of a renaming.
  std::map<std::shared_ptr<Inode>, std::string> contents;
  for (const auto& [path, inode] : left) {
    if (!contents.contains(inode)) contents[inode] = Survivor(*inode, random);
  }
  for (const std::string& path : paths) std::filesystem::remove(path);
  entries_.clear();
  for (const auto& [path, inode] : left) {
    const std::string& content = contents[inode];
    std::ofstream(path, std::ios::binary) << content;
    entries_[path] = std::make_shared<Inode>(Inode{content, content});
  }
  synced_entries_ = entries_;
  dead_ = false;
  chosen_ = UINT64_MAX;
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                                           IODebugContext* debug) {
  return WithFate(Next(), [&] {
    std::unique_ptr<rocksdb::FSWritableFile> real;
    IOStatus status = target()->NewWritableFile(path, options, &real, debug);
    if (!status.ok()) return status;
    auto inode = std::make_shared<Inode>();
    Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { ChangeEntries({{path, inode}}); });
    *file = std::make_unique<WritableFile>(std::move(real), *this, std::move(inode));
    return status;
  });
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                                              IODebugContext* debug) {
  return WithFate(Next(), [&] {
    std::shared_ptr<Inode> inode;
    Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { inode = Find(path); });
    std::unique_ptr<rocksdb::FSWritableFile> real;
    IOStatus status = target()->ReopenWritableFile(path, options, &real, debug);
    if (!status.ok()) return status;
    *file = std::make_unique<WritableFile>(std::move(real), *this, std::move(inode));
    return status;
  });
}

IOStatus FaultyFileSystem::NewRandomRWFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                           IODebugContext* debug) {
  std::shared_ptr<Inode> inode;
  Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { inode = Find(path); });
  std::unique_ptr<rocksdb::FSRandomRWFile> real;
  IOStatus status = target()->NewRandomRWFile(path, options, &real, debug);
  if (status.ok()) *file = std::make_unique<RandomRwFile>(std::move(real), *this, std::move(inode));
  return status;
}

IOStatus FaultyFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                                        IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> real;
  IOStatus status = target()->NewDirectory(path, options, &real, debug);
  if (status.ok()) *directory = std::make_unique<Directory>(std::move(real), *this);
  return status;
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                      IODebugContext* debug) {
  return WithFate(Next(), [&] {
    Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { Find(path); });
    IOStatus status = target()->DeleteFile(path, options, debug);
    if (status.ok())
      Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { ChangeEntries({{path, nullptr}}); });
    return status;
  });
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* debug) {
  return WithFate(Next(), [&] {
    Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      Find(from);
      if (std::filesystem::exists(to)) Find(to);
    });
    IOStatus status = target()->RenameFile(from, to, options, debug);
    if (status.ok()) {
      Change([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        ChangeEntries({{to, entries_[from]}, {from, nullptr}});
      });
    }
    return status;
  });
}

}  // namespace perceptrond::testing
