// Backups: made while the server learns, checked, and restored, after which each producer goes on
// exactly once.
#include <rocksdb/db.h>

#include <atomic>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/journal/table_keys.h"
#include "tests/integration/storage_fixture.h"

namespace perceptrond::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BackupTest : public StorageTest {
 protected:
  void StartWithBackups() { Start({"--backup-dir", backups()}); }
  std::string Backup(int keep, v1::Backup* backup = nullptr) {
    return Call("BackupService/CreateBackup", absl::StrCat("keep: ", keep), backup);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const auto all = AnswerOf<v1::ListBackupsResponse>("BackupService/ListBackups", "");
    for (const v1::Backup& backup : all.backups())
      names.push_back(absl::StrCat(backup.name(), backup.damaged() ? " damaged" : ""));
    return names;
  }
  float Score(const std::string& model) {
    return AnswerOf<v1::PredictResponse>(
               "PredictionService/Predict",
               "model: 'models/" + model + "' examples { dense { values: [1.5, -2] } }")
        .scores(0);
  }
  const std::string restored_ = dir_.path() + "/restored";
};

// The drill of docs/backup.md.
TEST_F(BackupTest, ARestoredBackupPredictsAsItDidAndItsProducersContinueExactlyOnce) {
  StartWithBackups();
  Create("m");
  RawLearnStream stream(*learning_, "m", "p");
  const int64_t epoch = stream.Open().epoch();
  SendExamples(stream, 0, kExamples);
  const v1::Model at_backup = Get("m");
  const float score = Score("m");
  // Another model learns meanwhile.
  Create("busy");
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    RawLearnStream learning(*learning_, "busy", "b");
    learning.Open();
    for (int64_t i = 0; !stop; ++i) learning.Ask(Example(i));
    EXPECT_TRUE(learning.Finish().ok());
  });
  v1::Backup backup;
  ASSERT_EQ(Backup(0, &backup), "OK");
  EXPECT_EQ(backup.name(), "backups/1");
  SendExamples(stream, kExamples, 2 * kExamples);
  stop = true;
  busy.join();
  EXPECT_TRUE(stream.Finish().ok());
  const v1::Model at_end = Get("m");
  server_->Kill();

  RunToEnd(0, "restore " + backups() + " " + restored_);
  EXPECT_THAT(RunToEnd(0, "verify " + restored_),
              HasSubstr("models/m  revision " + std::to_string(at_backup.revision())));
  StartOn(restored_, {"--backup-dir", backups()});
  EXPECT_EQ(Score("m"), score);
  EXPECT_EQ(Get("m").weights().SerializeAsString(), at_backup.weights().SerializeAsString());

  v1::Producer claim;
  claim.set_id("p");
  claim.mutable_resume()->set_model_uid(at_end.uid());
  claim.mutable_resume()->set_acknowledged_offset(2 * kExamples - 1);
  claim.mutable_resume()->set_acknowledged_revision(at_end.revision());
  claim.mutable_resume()->set_acknowledged_epoch(epoch);
  EXPECT_EQ(Reason(ClaimStatus("m", claim)), "UPDATES_LOST");
  RawLearnStream again(*learning_, "m", "p");
  const v1::StreamOpened opened = again.Open();
  EXPECT_EQ(opened.next_offset(), kExamples);
  EXPECT_GT(opened.epoch(), epoch);
  SendExamples(again, kExamples, 2 * kExamples);
  EXPECT_TRUE(again.Finish().ok());
  EXPECT_EQ(Get("m").weights().SerializeAsString(), at_end.weights().SerializeAsString());
  EXPECT_EQ(Get("m").report().examples(), at_end.report().examples());
  // It keeps the journal's id, and so goes on with its backups.
  EXPECT_EQ(Backup(0), "OK");
}

TEST_F(BackupTest, OldOnesAreDeletedAndEachThatStaysIsWhole) {
  StartWithBackups();
  EXPECT_EQ(Names(), std::vector<std::string>());
  Create("m");
  RawLearnStream stream(*learning_, "m", "p");
  stream.Open();
  v1::Backup backup;
  for (int i = 0; i < 4; ++i) {
    SendExamples(stream, i * 10, i * 10 + 10);
    ASSERT_EQ(Backup(2, &backup), "OK");
    EXPECT_GT(backup.size_bytes(), 0);
    EXPECT_GT(backup.create_time().seconds(), 0);
  }
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"backups/3", "backups/4"}));
  EXPECT_THAT(RunToEnd(0, "verify " + backups() + " -o json"),
              AllOf(HasSubstr("\"examples\":\"30\""), HasSubstr("\"examples\":\"40\"")));
  RunToEnd(0, "restore " + backups() + " " + restored_ + " --backup 3");
  EXPECT_THAT(RunToEnd(0, "verify " + restored_), HasSubstr("examples 30"));
}

TEST_F(BackupTest, DamageInABackupIsFound) {
  StartWithBackups();
  Create("m");
  LearnExamples("m", 50);
  ASSERT_EQ(Backup(0), "OK");
  const fs::path log = Log(backups() + "/private/1");
  ASSERT_FALSE(log.empty());
  {
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(log) / 2));
    file.put('\xff').put('\x00').put('\xff');
  }
  EXPECT_THAT(RunToEnd(1, "verify " + backups()), HasSubstr("DAMAGED"));
  RunToEnd(1, "restore " + backups() + " " + restored_);
  EXPECT_FALSE(fs::exists(restored_ + "/CURRENT"));
}

TEST_F(BackupTest, ThatLacksAFileIsNeitherSoundNorPassedOver) {
  StartWithBackups();
  Create("m");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Backup(0), "OK");
  fs::remove(backups() + "/private/3/CURRENT");
  std::ofstream(backups() + "/meta/1") << "x";
  EXPECT_EQ(Names(),
            (std::vector<std::string>{"backups/1 damaged", "backups/2", "backups/3 damaged"}));
  server_->Kill();
  EXPECT_THAT(RunToEnd(1, "verify " + fs::relative(backups()).string()),
              AllOf(HasSubstr("backups/1: DAMAGED"), HasSubstr("backups/2: sound"),
                    HasSubstr("backups/3: DAMAGED")));
  EXPECT_THAT(RunToEnd(1, "restore " + backups() + " " + restored_), HasSubstr("backups/3"));
  EXPECT_FALSE(fs::exists(restored_));
  fs::remove(backups() + "/meta/3");
  EXPECT_THAT(RunToEnd(1, "restore " + backups() + " " + restored_), HasSubstr("backups/3"));
  RunToEnd(0, "restore " + backups() + " " + restored_ + " --backup 2");
}

TEST_F(BackupTest, OfAStoppedServerIsMadeByItsProgram) {
  Start();
  Create("m");
  EXPECT_EQ(server_->Terminate(), 0);
  EXPECT_THAT(RunToEnd(0, "backup " + data() + " " + backups() + " --keep 3"),
              HasSubstr("backups/1"));
  RunToEnd(0, "verify " + backups());
  Start();
  EXPECT_THAT(RunToEnd(1, "verify " + data()),
              AllOf(HasSubstr("in use by another server"), Not(HasSubstr("DAMAGED"))));
  const std::string absent = dir_.path() + "/absent";
  EXPECT_THAT(RunToEnd(1, "verify " + absent), AllOf(HasSubstr(absent), Not(HasSubstr("DAMAGED"))));
  EXPECT_FALSE(fs::exists(absent));
}

TEST_F(BackupTest, OnlyAnEmptyDirectoryIsRestoredIntoAndOnlyOwnBackupsAreAddedTo) {
  StartWithBackups();
  Create("m");
  ASSERT_EQ(Backup(0), "OK");
  const std::string other = dir_.path() + "/other";
  fs::create_directory(other);
  std::ofstream(other + "/file") << "text";
  for (const std::string& taken : {data(), other})
    EXPECT_THAT(RunToEnd(1, "restore " + backups() + " " + taken), HasSubstr(taken));
  EXPECT_EQ(ReadAll(other + "/file"), "text");
  server_->Terminate();
  StartOn(dir_.path() + "/data-2", {"--backup-dir", backups()});
  EXPECT_EQ(Backup(0), "FAILED_PRECONDITION BACKUP_OF_ANOTHER");
  server_->Terminate();
  Start();
  EXPECT_EQ(Backup(0), "FAILED_PRECONDITION BACKUPS_OFF");
  RunToEnd(2, "restore");
  RunToEnd(0, "verify --help");
}

TEST_F(BackupTest, AModelThatItsJournalContradictsIsNamed) {
  Start();
  Create("bad");
  LearnExamples("bad", 20);
  Create("good");
  server_->Terminate();
  RunToEnd(0, "verify " + data());
  {
    // One record less.
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), data(), &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions()));
    const std::string records = table_keys::Of(1, table_keys::Kind::kRecord);
    it->Seek(records);
    ASSERT_TRUE(it->Valid() && it->key().starts_with(records));
    ASSERT_TRUE(db->Delete(rocksdb::WriteOptions(), it->key()).ok());
  }
  EXPECT_THAT(RunToEnd(1, "verify " + data()),
              AllOf(HasSubstr("models/bad  DAMAGED: "), HasSubstr("models/good  revision 0")));
}

}  // namespace
}  // namespace perceptrond::testing
