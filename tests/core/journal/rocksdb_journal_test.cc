// What the journal on disk must do besides: survive a restart, and tell damage from an end.
#include "core/journal/rocksdb_journal.h"

#include <rocksdb/db.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/journal/keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;
using testing::CommitOne;
using testing::CreateModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LastRevisions;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::ReadRecords;

constexpr uint64_t kRecords = 400;
constexpr int kRows = 20;
// What RocksDB's log is written in.
constexpr uintmax_t kBlock = 32 << 10;

absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory;
  return RocksDbJournal::Open(options);
}

// The largest file of a kind.
fs::path FindFile(const std::string& directory, const std::string& extension) {
  fs::path largest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != extension) continue;
    if (largest.empty() || fs::file_size(entry.path()) > fs::file_size(largest))
      largest = entry.path();
  }
  return largest;
}

void FlipByte(const fs::path& path, uintmax_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x40));
  ASSERT_TRUE(file.good());
}

// Opens and reads everything there should be: how many records were found whole, in order and
// agreeing with the counters; or why not.
absl::StatusOr<uint64_t> ReadAll(const std::string& directory) {
  auto journal = Open(directory);
  if (!journal.ok()) return journal.status();
  const auto header = (*journal)->Find("a");
  if (!header.ok()) return header.status();
  const auto standing = (*journal)->LoadStanding(header->id());
  if (!standing.ok()) return standing.status();
  const auto records = ReadRecords(**journal, header->id());
  if (!records.ok()) return records.status();
  uint64_t next = 1;
  for (const storage::UpdateRecord& record : *records) {
    EXPECT_EQ(record.SerializeAsString(), MakeRecord(next, kRows).SerializeAsString());
    next += kRows;
  }
  EXPECT_EQ(standing->counters.updates(), next - 1);
  return records->size();
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
    fs::remove_all(copy);
    fs::copy(home(), copy, fs::copy_options::recursive);
    return copy;
  }
  // Opening writes what the log has to a table.
  void MoveToTable() { EXPECT_OK(Open(home()).status()); }

 private:
  const testing::TempDir directory_;
};

TEST_F(OnDisk, ReopeningKeepsEverything) {
  for (int i = 0; i < 3; ++i) {
    const auto records = ReadAll(home());
    ASSERT_OK(records.status());
    EXPECT_EQ(*records, kRecords);
  }
}

TEST_F(OnDisk, ReopeningKeepsSnapshotsDeletionsAndTheLastId) {
  uint64_t last = 0;
  {
    auto journal = Open(home());
    storage::Snapshot snapshot;
    snapshot.set_revision(5);
    snapshot.add_scalars(0.1);
    ASSERT_OK((*journal)->SaveSnapshot((*journal)->Find("a")->id(), snapshot));
    CreateModel(**journal, "gone");
    last = CreateModel(**journal, "last").id();
    ASSERT_OK((*journal)->Delete("gone"));
    ASSERT_OK((*journal)->Delete("last"));
  }
  auto journal = Open(home());
  ASSERT_OK(journal.status());
  EXPECT_EQ((*journal)->LoadSnapshot((*journal)->Find("a")->id()).value()->scalars(0), 0.1);
  EXPECT_TRUE(absl::IsNotFound((*journal)->Find("gone").status()));
  EXPECT_GT(CreateModel(**journal, "new").id(), last);
}

TEST_F(OnDisk, AFlippedByteInATableIsDataLoss) {
  MoveToTable();
  const fs::path table = FindFile(home(), ".sst");
  ASSERT_FALSE(table.empty());
  const uintmax_t size = fs::file_size(table);
  int losses = 0;
  for (uintmax_t at = 0; at < size; at += 1 + size / 60) {
    const std::string copy = Copy();
    FlipByte(fs::path(copy) / table.filename(), at);
    const auto records = ReadAll(copy);
    // Some bytes, as those of the table's statistics, are never read.
    if (records.ok()) {
      EXPECT_EQ(*records, kRecords) << "byte " << at << " of " << size;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(records.status())) << records.status() << " byte " << at;
      ++losses;
    }
  }
  EXPECT_GT(losses, 40);
}

TEST_F(OnDisk, AFlippedByteInTheMiddleOfTheLogIsDataLoss) {
  const fs::path log = FindFile(home(), ".log");
  ASSERT_FALSE(log.empty());
  const uintmax_t size = fs::file_size(log);
  ASSERT_GT(size, 3 * kBlock);
  // In the log's last block a record whose length is damaged cannot be told from one that a crash
  // cut off.
  for (uintmax_t at = 0; at + kBlock < size; at += 1 + size / 60) {
    const std::string copy = Copy();
    FlipByte(fs::path(copy) / log.filename(), at);
    const auto records = ReadAll(copy);
    EXPECT_TRUE(absl::IsDataLoss(records.status()))
        << records.status() << " byte " << at << " of " << size;
  }
}

TEST_F(OnDisk, ALogCutOffInItsLastWritesLosesThoseAndNoOthers) {
  const fs::path log = FindFile(home(), ".log");
  const uintmax_t size = fs::file_size(log);
  const uintmax_t each = size / kRecords;
  for (const uintmax_t cut : {uintmax_t{1}, uintmax_t{7}, each / 2, 3 * each, 20 * each + 1}) {
    const std::string copy = Copy();
    fs::resize_file(fs::path(copy) / log.filename(), size - cut);
    const auto records = ReadAll(copy);
    ASSERT_OK(records.status());
    EXPECT_LT(*records, kRecords);
    EXPECT_GE(*records + cut / each + 2, kRecords) << "cut " << cut;
  }
}

TEST_F(OnDisk, AMissingTableIsAnError) {
  MoveToTable();
  const std::string copy = Copy();
  fs::remove(fs::path(copy) / FindFile(home(), ".sst").filename());
  EXPECT_FALSE(ReadAll(copy).ok());
}

TEST_F(OnDisk, AMissingPieceOfASnapshotIsDataLoss) {
  uint64_t id = 0;
  {
    auto journal = Open(home());
    id = (*journal)->Find("a")->id();
    storage::Snapshot snapshot;
    snapshot.set_revision(3);
    for (int i = 0; i < 700'000; ++i) snapshot.add_scalars(i);
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
  }
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), home(), &raw).ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  ASSERT_TRUE(db->Delete(rocksdb::WriteOptions(), keys::SnapshotChunk(id, 3, 2)).ok());
  ASSERT_TRUE(db->Close().ok());
  auto journal = Open(home());
  EXPECT_TRUE(absl::IsDataLoss((*journal)->LoadSnapshot(id).status()));
}

uintmax_t SizeOf(const std::string& directory, const std::string& extension) {
  uintmax_t size = 0;
  for (const auto& entry : fs::directory_iterator(directory))
    size += entry.path().extension() == extension ? entry.file_size() : 0;
  return size;
}

// What the files hold when SaveSnapshot returns, as a kill would leave it.
TEST_F(OnDisk, ALargeSnapshotIsOnTheDiskWhenItIsSavedAndInNoLog) {
  const std::string fresh = home() + "-fresh";
  RocksDbJournal::Options options;
  options.directory = fresh;
  options.write_buffer_bytes = 8 << 20;
  auto journal = RocksDbJournal::Open(options);
  ASSERT_OK(journal.status());
  const uint64_t id = CreateModel(**journal, "a").id();
  for (uint64_t i = 0; i < 3; ++i)
    ASSERT_OK(CommitOne(**journal, MakeEntry(id, {MakeRecord(i * kRows + 1, kRows)}), true));
  storage::Snapshot snapshot;
  snapshot.set_revision(2 * kRows);
  for (int i = 0; i < 700'000; ++i) snapshot.add_scalars(i);
  ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
  EXPECT_LT(SizeOf(fresh, ".log"), kBlock);
  EXPECT_GT(SizeOf(fresh, ".sst"), size_t{1} << 20);

  const std::string copy = home() + "-copy";
  fs::copy(fresh, copy, fs::copy_options::recursive);
  auto found = Open(copy);
  ASSERT_OK(found.status());
  EXPECT_EQ((*found)->LoadSnapshot(id).value()->SerializeAsString(), snapshot.SerializeAsString());
  EXPECT_THAT(LastRevisions(ReadRecords(**found, id).value()), ElementsAre(3 * kRows));
  EXPECT_EQ((*found)->LoadStanding(id)->counters.updates(), 3 * kRows);
}

RocksDbJournal::Options SmallParts(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory;
  options.snapshot_part_bytes = 200;
  return options;
}

// Mostly zero, not zero, and all zero; names; more than many small parts hold.
storage::Snapshot LargeSnapshot(uint64_t revision) {
  storage::Snapshot snapshot;
  snapshot.set_revision(revision);
  snapshot.add_scalars(0.1);
  snapshot.mutable_time()->set_seconds(7);
  snapshot.mutable_history()->set_spacing(2);
  snapshot.mutable_history()->add_points()->set_revision(4);
  storage::StateArray& dense = *snapshot.add_arrays();
  dense.set_size(1000);
  for (int i = 0; i < 1000; ++i) dense.add_values(static_cast<float>(i));
  snapshot.add_arrays()->set_size(5000);
  storage::StateArray& sparse = *snapshot.add_arrays();
  sparse.set_size(5000);
  for (int i = 0; i < 500; ++i) {
    sparse.add_indices(7 * i);
    sparse.add_values(static_cast<float>(-i));
  }
  for (int i = 0; i < 300; ++i) snapshot.add_names(absl::StrCat("name", i));
  snapshot.add_names(std::string(1000, 'x'));
  for (int i = 0; i < 200; ++i) snapshot.add_class_names(absl::StrCat("class", i));
  return snapshot;
}

TEST_F(OnDisk, ASnapshotLargerThanAMessageMayBeIsKeptInPartsAndIsTheSameAgain) {
  const storage::Snapshot large = LargeSnapshot(kRows);
  uint64_t id = 0;
  {
    auto journal = RocksDbJournal::Open(SmallParts(home()));
    id = (*journal)->Find("a")->id();
    ASSERT_OK((*journal)->SaveSnapshot(id, large));
    EXPECT_EQ(LastRevisions(ReadRecords(**journal, id).value()).front(), 2 * kRows);
  }
  auto journal = Open(home());
  const auto found = (*journal)->LoadSnapshot(id);
  ASSERT_OK(found.status());
  EXPECT_EQ((*found)->SerializeAsString(), large.SerializeAsString());
}

// Were its pieces written over the other's, a crash in the middle would leave neither.
TEST_F(OnDisk, ASnapshotOfTheRevisionThatIsKeptTakesItsPlaceWithoutWritingOverIt) {
  auto journal = RocksDbJournal::Open(SmallParts(home()));
  const uint64_t id = (*journal)->Find("a")->id();
  storage::Snapshot snapshot = LargeSnapshot(kRows);
  for (int nanos = 1; nanos <= 3; ++nanos) {
    snapshot.mutable_time()->set_nanos(nanos);
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
    EXPECT_EQ((*journal)->LoadSnapshot(id).value()->SerializeAsString(),
              snapshot.SerializeAsString());
  }
  ASSERT_OK((*journal)->SaveSnapshot(id, LargeSnapshot(2 * kRows)));
  EXPECT_EQ((*journal)->LoadSnapshot(id).value()->revision(), 2 * kRows);
  journal->reset();
  // Nothing of the earlier ones is left.
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), home(), &raw).ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions()));
  const std::string wanted = keys::SnapshotChunk(id, 2 * kRows, 0).substr(0, 17);
  for (it->Seek(keys::OfModel('c', id)); it->Valid() && it->key()[0] == 'c'; it->Next())
    EXPECT_TRUE(it->key().starts_with(wanted));
}

TEST_F(OnDisk, ASmallerSnapshotTakesThePlaceOfOneInParts) {
  auto journal = RocksDbJournal::Open(SmallParts(home()));
  const uint64_t id = (*journal)->Find("a")->id();
  ASSERT_OK((*journal)->SaveSnapshot(id, LargeSnapshot(kRows)));
  storage::Snapshot small;
  small.set_revision(2 * kRows);
  small.add_scalars(1);
  ASSERT_OK((*journal)->SaveSnapshot(id, small));
  EXPECT_EQ((*journal)->LoadSnapshot(id).value()->SerializeAsString(), small.SerializeAsString());
}

TEST_F(OnDisk, AMissingPartOfASnapshotIsDataLoss) {
  auto journal = RocksDbJournal::Open(SmallParts(home()));
  const uint64_t id = (*journal)->Find("a")->id();
  ASSERT_OK((*journal)->SaveSnapshot(id, LargeSnapshot(kRows)));
  journal->reset();
  {
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), home(), &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    ASSERT_TRUE(db->Delete(rocksdb::WriteOptions(), keys::SnapshotChunk(id, kRows, 20)).ok());
  }
  journal = Open(home());
  EXPECT_TRUE(absl::IsDataLoss((*journal)->LoadSnapshot(id).status()));
}

TEST_F(OnDisk, OnlyASnapshotInPartsKeepsServersOfTheFirstFormatOut) {
  const auto format = [&] {
    rocksdb::DB* raw = nullptr;
    EXPECT_TRUE(rocksdb::DB::OpenForReadOnly(rocksdb::Options(), home(), &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    std::string value;
    EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), std::string(keys::kFormat), &value).ok());
    return keys::ReadNumber(value);
  };
  const auto save = [&](const RocksDbJournal::Options& options, uint64_t revision) {
    auto journal = RocksDbJournal::Open(options);
    ASSERT_OK((*journal)->SaveSnapshot((*journal)->Find("a")->id(), LargeSnapshot(revision)));
  };
  RocksDbJournal::Options usual;
  usual.directory = home();
  save(usual, kRows);
  EXPECT_EQ(format(), 1);
  save(SmallParts(home()), 2 * kRows);
  EXPECT_EQ(format(), 3);
}

TEST_F(OnDisk, DamageIsReportedWithThePlaceAndWithWhatToDo) {
  const fs::path log = FindFile(home(), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  const auto journal = Open(home());
  EXPECT_TRUE(absl::IsDataLoss(journal.status()));
  EXPECT_THAT(std::string(journal.status().message()),
              ::testing::AllOf(HasSubstr(home()), HasSubstr(log.filename().string()),
                               HasSubstr("backup"), HasSubstr("docs/journal.md")));
}

// The way out that docs/journal.md describes.
TEST_F(OnDisk, WithoutTheDamagedLogAndTheLaterOnesEverythingIsAsItWasBeforeThem) {
  MoveToTable();
  {
    auto journal = Open(home());
    const uint64_t id = (*journal)->Find("a")->id();
    const storage::UpdateRecord next = MakeRecord(kRecords * kRows + 1, kRows);
    ASSERT_OK(CommitOne(**journal, MakeEntry(id, {next}), false));
    CreateModel(**journal, "later");
  }
  const fs::path log = FindFile(home(), ".log");
  FlipByte(log, 20);
  ASSERT_FALSE(Open(home()).ok());
  for (const auto& entry : fs::directory_iterator(home())) {
    if (entry.path().extension() == ".log" && entry.path() >= log) fs::remove(entry.path());
  }
  const auto records = ReadAll(home());
  ASSERT_OK(records.status());
  EXPECT_EQ(*records, kRecords);
  EXPECT_TRUE(absl::IsNotFound((*Open(home()))->Find("later").status()));
}

TEST_F(OnDisk, ADirectoryThatIsLetGoInTimeIsWaitedFor) {
  auto first = Open(home());
  ASSERT_OK(first.status());
  RocksDbJournal::Options options;
  options.directory = home();
  options.lock_timeout = absl::Minutes(1);
  options.on_locked = [&] { first->reset(); };
  const auto second = RocksDbJournal::Open(options);
  ASSERT_OK(second.status());
  EXPECT_EQ(*first, nullptr);
}

TEST_F(OnDisk, ASecondServerIsTurnedAwayWithAdvice) {
  const auto first = Open(home());
  ASSERT_OK(first.status());
  const auto second = Open(home());
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()),
              ::testing::AllOf(HasSubstr(home()), HasSubstr("another server")));
}

TEST_F(OnDisk, ADirectoryThatCannotBeMadeIsUnavailable) {
  const std::string file = home() + "/plain";
  std::ofstream(file) << "a file";
  const auto journal = Open(file + "/journal");
  EXPECT_TRUE(absl::IsUnavailable(journal.status()));
  EXPECT_THAT(std::string(journal.status().message()), HasSubstr(file));
}

TEST_F(OnDisk, AJournalOfANewerFormatIsRefused) {
  {
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), home(), &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    std::string version;
    keys::AppendNumber(version, 4);
    const rocksdb::Slice key(keys::kFormat.data(), keys::kFormat.size());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), key, version).ok());
  }
  const auto journal = Open(home());
  EXPECT_TRUE(absl::IsFailedPrecondition(journal.status())) << journal.status();
  EXPECT_THAT(std::string(journal.status().message()), HasSubstr("newer"));
}

TEST_F(OnDisk, SnapshotsGiveTheDiskBack) {
  // A small buffer, so that tables are written; deleted ranges go when tables are merged.
  RocksDbJournal::Options options;
  options.directory = home() + "-small";
  options.write_buffer_bytes = 64 << 10;
  auto journal = RocksDbJournal::Open(options);
  ASSERT_OK(journal.status());
  const uint64_t id = CreateModel(**journal, "a").id();
  constexpr uint64_t kMany = 20'000;
  storage::Snapshot snapshot;
  uint64_t written = 0;
  for (uint64_t i = 0; i < kMany; ++i) {
    const JournalEntry entry = MakeEntry(id, {MakeRecord(i * kRows + 1, kRows)});
    written += entry.records[0].ByteSizeLong();
    ASSERT_OK(CommitOne(**journal, entry, false));
    if (i % 500 != 0) continue;
    snapshot.set_revision(entry.counters.updates());
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
  }
  journal->reset();
  uintmax_t kept = 0;
  for (const auto& entry : fs::directory_iterator(options.directory))
    kept += entry.is_regular_file() ? entry.file_size() : 0;
  EXPECT_LT(kept, written / 4);
}

}  // namespace
}  // namespace perceptrond
