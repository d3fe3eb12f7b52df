// Snapshots on disk are whole or not there, in parts.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/journal/table_keys.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/journal/on_disk.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;
using testing::CommitOne;
using testing::CreateModel;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kRows;
using testing::LastRevisions;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::OnDisk;
using testing::Open;
using testing::ReadRecords;

// The keys that begin so.
std::vector<std::string> Keys(const std::string& directory, const std::string& prefix) {
  const std::unique_ptr<rocksdb::DB> db = testing::OpenRaw(directory);
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions()));
  std::vector<std::string> keys;
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next())
    keys.push_back(it->key().ToString());
  return keys;
}

std::vector<std::string> Pieces(const std::string& directory, uint64_t id) {
  return Keys(directory, table_keys::Of(id, table_keys::Kind::kPieces));
}

TEST_F(OnDisk, TheStateOfACopyThatAKillCutsShortIsDroppedByTheNextStart) {
  storage::ModelHeader header;
  header.mutable_model()->set_name("copy");
  storage::Snapshot state;
  state.set_revision(1);
  state.mutable_scalars()->Resize(700'000, 1);
  const std::string killed = home() + "-killed";
  {
    auto journal = Open(home());
    ASSERT_OK(journal.status());
    // When it is asked last, all of the state is written, and the model is not there yet.
    const ModelGuard guard = [&](const ModelsNow& /*models*/) {
      fs::remove_all(killed);
      fs::copy(home(), killed, fs::copy_options::recursive);
      return absl::OkStatus();
    };
    ASSERT_OK((*journal)->CreateWith(header, state, {}, guard));
  }
  const uint64_t unfinished = header.id();
  ASSERT_GT(Pieces(killed, unfinished).size(), 1U);
  {
    auto journal = Open(killed);
    ASSERT_OK(journal.status());
    EXPECT_TRUE(absl::IsNotFound((*journal)->Find("copy").status()));
    ASSERT_OK((*journal)->CreateWith(header, state, {}));
  }
  // A start drops nothing of the second copy.
  for (const std::string& directory : {killed, home()}) {
    auto journal = Open(directory);
    ASSERT_OK(journal.status());
    const uint64_t id = (*journal)->Find("copy")->id();
    EXPECT_OK((*journal)->LoadSnapshot(id).status());
    journal->reset();
    EXPECT_GT(Pieces(directory, id).size(), 1U);
    EXPECT_EQ(Pieces(directory, unfinished).empty(), id != unfinished);
    EXPECT_THAT(Keys(directory, table_keys::Unfinished(0).substr(0, 1)), IsEmpty());
  }
}

// The files are copied when SaveSnapshot returns, as a kill would leave them.
TEST_F(OnDisk, ALargeSnapshotIsOnTheDiskWhenItIsSaved) {
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

  const std::string copy = home() + "-copy";
  fs::copy(fresh, copy, fs::copy_options::recursive);
  auto found = Open(copy);
  ASSERT_OK(found.status());
  EXPECT_EQ((*found)->LoadSnapshot(id).value()->SerializeAsString(), snapshot.SerializeAsString());
  EXPECT_THAT(LastRevisions(ReadRecords(**found, id).value()), ElementsAre(3 * kRows));
  EXPECT_EQ((*found)->LoadCommittedState(id)->counters.report().updates(), 3 * kRows);
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
  snapshot.mutable_learning_curve()->set_spacing(2);
  snapshot.mutable_learning_curve()->add_points()->set_revision(4);
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
  snapshot.mutable_document_counts()->set_documents(100);
  for (int i = 0; i < 100; ++i) {
    snapshot.mutable_document_counts()->add_slot_distances(1);
    snapshot.mutable_document_counts()->add_counts(i);
  }
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
TEST_F(OnDisk, ASnapshotOfTheStoredRevisionReplacesItWithoutWritingOverIt) {
  auto journal = RocksDbJournal::Open(SmallParts(home()));
  const uint64_t id = (*journal)->Find("a")->id();
  storage::Snapshot snapshot = LargeSnapshot(kRows);
  for (int nanos = 1; nanos <= 3; ++nanos) {
    snapshot.mutable_time()->set_nanos(nanos);
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
    EXPECT_EQ((*journal)->LoadSnapshot(id).value()->SerializeAsString(),
              snapshot.SerializeAsString());
  }
  snapshot.Clear();
  snapshot.set_revision(2 * kRows);
  ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
  EXPECT_EQ((*journal)->LoadSnapshot(id).value()->SerializeAsString(),
            snapshot.SerializeAsString());
  journal->reset();
  // Nothing of the earlier ones is left.
  EXPECT_EQ(Pieces(home(), id).size(), 1U);
}

TEST_F(OnDisk, AMissingPieceOrPartOfASnapshotIsDataLoss) {
  for (const bool in_parts : {false, true}) {
    RocksDbJournal::Options options = SmallParts(home());
    if (!in_parts) options.snapshot_part_bytes = RocksDbJournal::Options().snapshot_part_bytes;
    const uint64_t revision = in_parts ? 2 * kRows : kRows;
    storage::Snapshot snapshot = LargeSnapshot(revision);
    if (!in_parts) snapshot.mutable_scalars()->Resize(700'000, 1);
    auto journal = RocksDbJournal::Open(options);
    const uint64_t id = (*journal)->Find("a")->id();
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
    journal->reset();
    const std::string key = Pieces(home(), id).at(in_parts ? 20 : 2);
    ASSERT_TRUE(testing::OpenRaw(home())->Delete(rocksdb::WriteOptions(), key).ok());
    journal = Open(home());
    EXPECT_TRUE(absl::IsDataLoss((*journal)->LoadSnapshot(id).status()));
  }
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
    snapshot.set_revision(entry.counters.report().updates());
    ASSERT_OK((*journal)->SaveSnapshot(id, snapshot));
  }
  journal->reset();
  uintmax_t kept = 0;
  for (const auto& entry : fs::directory_iterator(options.directory))
    kept += entry.is_regular_file() && entry.path().filename() != "RESERVE" ? entry.file_size() : 0;
  EXPECT_LT(kept, written / 4);
}

}  // namespace
}  // namespace perceptrond
