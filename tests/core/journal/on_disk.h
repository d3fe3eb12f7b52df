// A journal on disk with something in it.
#pragma once

#include <rocksdb/db.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

constexpr uint64_t kRecords = 400;
constexpr int kRows = 20;
// The block size of RocksDB's log.
constexpr uintmax_t kBlock = 32 << 10;

inline absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory;
  return RocksDbJournal::Open(options);
}

// The database below the journal.
inline std::unique_ptr<rocksdb::DB> OpenRaw(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(options, directory, &db).ok());
  return std::unique_ptr<rocksdb::DB>(db);
}

class OnDisk : public ::testing::Test {
 protected:
  // A journal with kRecords records, closed: all of it in the log.
  OnDisk() {
    auto journal = Open(home());
    EXPECT_OK(journal.status());
    const uint64_t id = CreateModel(**journal, "a").id();
    for (uint64_t i = 0; i < kRecords; ++i)
      EXPECT_OK(CommitOne(**journal, MakeEntry(id, {MakeRecord(i * kRows + 1, kRows)}), false));
    EXPECT_OK((*journal)->Sync());
  }
  std::string home() const { return directory_.path() + "/home"; }
  // A copy to do damage to.
  std::string Copy() {
    const std::string copy = directory_.path() + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(home(), copy, std::filesystem::copy_options::recursive);
    return copy;
  }
  // Opening writes what the log has to a table.
  void MoveToTable() { EXPECT_OK(Open(home()).status()); }

 private:
  const TempDir directory_;
};

}  // namespace perceptrond::testing
