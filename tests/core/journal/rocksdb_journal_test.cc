// A journal on disk survives a restart, and tells damage from an end.
#include "core/journal/rocksdb/rocksdb_journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/journal/stored_message.h"
#include "core/journal/table_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/journal/on_disk.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;
using testing::CommitOne;
using testing::CreateModel;
using ::testing::HasSubstr;
using testing::kBlock;
using testing::kRecords;
using testing::kRows;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::OnDisk;
using testing::Open;
using testing::ReadRecords;

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
  const auto state = (*journal)->LoadCommittedState(header->id());
  if (!state.ok()) return state.status();
  const auto records = ReadRecords(**journal, header->id());
  if (!records.ok()) return records.status();
  uint64_t next = 1;
  for (const storage::UpdateRecord& record : *records) {
    EXPECT_EQ(record.SerializeAsString(), MakeRecord(next, kRows).SerializeAsString());
    next += kRows;
  }
  EXPECT_EQ(state->counters.report().updates(), next - 1);
  return records->size();
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

TEST_F(OnDisk, ACommitDropsThePredictionsThatItsModelLearned) {
  {
    auto journal = Open(home());
    const uint64_t id = (*journal)->Find("a")->id();
    const uint64_t other = CreateModel(**journal, "b").id();
    const KeptPrediction kept[] = {{1, 10, "one"}, {2, 20, "two"}, {3, 30, "three"}};
    ASSERT_OK((*journal)->SavePredictions(id, kept));
    ASSERT_OK((*journal)->SavePredictions(other, kept));
    JournalEntry entry = MakeEntry(id, {MakeRecord(kRecords * kRows + 1, kRows)});
    entry.learned_predictions = {1, 3};
    ASSERT_OK(CommitOne(**journal, entry));
    // Refused as a whole.
    entry.learned_predictions = {2};
    EXPECT_EQ((*journal)->Commit({&entry, 1}, {true, 0}).value().written, 0U);
  }
  auto journal = Open(home());
  const auto kept = (*journal)->LoadPredictions((*journal)->Find("a")->id()).value();
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].number, 2U);
  EXPECT_EQ(kept[0].example, "two");
  EXPECT_EQ((*journal)->LoadPredictions((*journal)->Find("b")->id()).value().size(), 3U);
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
  // In the log's last block a record whose length is damaged looks like one that a crash cut
  // off.
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
    // As after a crash at the first start, when nothing says yet how long the log is.
    fs::remove(copy + "/WATERMARK");
    fs::remove(copy + "/JOURNAL");
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

TEST_F(OnDisk, DamageIsReportedWithItsPathAndWhatToDo) {
  const fs::path log = FindFile(home(), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  const auto journal = Open(home());
  EXPECT_TRUE(absl::IsDataLoss(journal.status()));
  EXPECT_THAT(std::string(journal.status().message()),
              ::testing::AllOf(HasSubstr(home()), HasSubstr(log.filename().string()),
                               HasSubstr("backup"), HasSubstr("docs/journal.md")));
}

TEST_F(OnDisk, NoMoreOfALogsNotesIsReadThanOneStartWrites) {
  fs::remove(home() + "/WATERMARK");
  const auto refused = [this](size_t bytes_before) {
    std::ofstream(home() + "/LOG")
        << std::string(bytes_before, 'x') << " 000012.log: dropping 1 bytes\n";
    return std::string(Open(home()).status().message());
  };
  EXPECT_THAT(refused(1000), HasSubstr("000012.log"));
  EXPECT_THAT(refused(1 << 20), ::testing::Not(HasSubstr("000012.log")));
}

TEST_F(OnDisk, OnlyTheNameOfALogIsRepeatedFromALogsNotes) {
  fs::remove(home() + "/WATERMARK");
  for (const std::string& name :
       {std::string(), std::string("\xff\x01"), std::string(1000, 'x'), std::string(1000, '7')}) {
    std::ofstream(home() + "/LOG") << name << ".log: dropping 1 bytes\n";
    EXPECT_THAT(std::string(Open(home()).status().message()),
                ::testing::Not(HasSubstr(name + ".log")));
  }
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
  fs::remove(home() + "/WATERMARK");
  fs::remove(home() + "/JOURNAL");
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

TEST_F(OnDisk, AnotherFailureInADirectoryCalledLockIsReportedAtOnceAndNotAsALock) {
  const std::string directory = home() + "/lock";
  // RocksDB cannot write its pointer to the manifest.
  fs::create_directories(directory + "/CURRENT");
  RocksDbJournal::Options options;
  options.directory = directory;
  options.lock_timeout = absl::Minutes(1);
  options.on_locked = [] { ADD_FAILURE() << "waits for a lock that nobody holds"; };
  const auto journal = RocksDbJournal::Open(options);
  EXPECT_FALSE(journal.ok());
  EXPECT_THAT(std::string(journal.status().message()), ::testing::Not(HasSubstr("another server")));
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
    const std::unique_ptr<rocksdb::DB> db = testing::OpenRaw(home());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), table_keys::Meta("format"), "3").ok());
  }
  const auto journal = Open(home());
  EXPECT_TRUE(absl::IsFailedPrecondition(journal.status())) << journal.status();
  EXPECT_THAT(std::string(journal.status().message()), HasSubstr("the version that wrote it"));
}

TEST(RocksDbJournalParse, MoreBytesThanProtobufReadsAreDataLoss) {
  // No byte of them is looked at: as an int their number would be 0, which is an empty message.
  const absl::string_view bytes("", size_t{1} << 32);
  storage::UpdateRecord record;
  EXPECT_TRUE(absl::IsDataLoss(ParseStored(bytes, record, "a record")));
}

}  // namespace
}  // namespace perceptrond
