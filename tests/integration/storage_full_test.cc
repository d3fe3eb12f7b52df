// A disk that is full or read-only: everything that reads works, also after a restart, and writing
// goes on once it can.
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/integration/storage_fixture.h"

namespace perceptrond::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FullDiskTest : public StorageTest {
 protected:
  // A small disk of its own; false where none may be mounted.
  bool Mount() {
    fs::create_directory(disk());
    mounted_ = mount("tmpfs", disk().c_str(), "tmpfs", 0, "size=100m") == 0;
    return mounted_;
  }
  ~FullDiskTest() override {
    server_.reset();
    if (mounted_) umount2(disk().c_str(), MNT_DETACH);
  }
  std::string disk() const { return dir_.path() + "/disk"; }
  std::string home() const { return disk() + "/data"; }
  // Another program leaves no byte.
  void Fill() {
    std::ofstream file(disk() + "/other", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  // Another program leaves 40 MiB, less than the reserve.
  void FillButSome() {
    std::ofstream file(disk() + "/other", std::ios::binary);
    const std::string block(1 << 20, 'x');
    while (fs::space(disk()).available > (40U << 20)) file.write(block.data(), 1 << 20).flush();
  }
  void Free() { fs::remove(disk() + "/other"); }
  bool Remount(unsigned long flags) {
    return mount("tmpfs", disk().c_str(), "tmpfs", MS_REMOUNT | flags, "size=100m") == 0;
  }
  void LearnSome() {
    StartOn(home());
    Create("m");
    LearnExamples("m", kExamples);
    before_ = Get("m");
  }
  void ExpectReads() {
    EXPECT_EQ(Get("m").weights().SerializeAsString(), before_.weights().SerializeAsString());
    EXPECT_EQ(Call("PredictionService/Predict", "model: 'models/m' examples {}"), "OK");
    EXPECT_EQ(AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", "").models_size(), 1);
  }
  void ExpectBackup() {
    EXPECT_EQ(Call("BackupService/CreateBackup", ""), "OK");
    RunToEnd(0, "verify " + backups());
  }
  grpc::Status Change() {
    return Send("ModelService/UpdateModel",
                absl::StrCat("model { name: 'models/m' description: '", ++changes_, "' }"));
  }
  std::string Delete() { return Call("ModelService/DeleteModel", "name: 'models/m'"); }

  bool mounted_ = false;
  int changes_ = 0;
  v1::Model before_;
};

TEST_F(FullDiskTest, ReadsAreAnsweredAlsoAfterARestartAndWritingGoesOnWithSpace) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  LearnSome();
  Fill();
  ExpectReads();
  // The server looks at the disk ten times a second, and the page that it writes to has room.
  grpc::Status changed;
  do {
    changed = Change();
  } while (changed.ok());
  EXPECT_EQ(Reason(changed), "JOURNAL_UNAVAILABLE");
  server_->Kill();
  StartOn(home(), {"--backup-dir", backups()});
  ExpectReads();
  EXPECT_EQ(Metric("perceptrond_journal_read_only"), "1");
  const grpc::Status refused = Change();
  EXPECT_EQ(Reason(refused), "JOURNAL_UNAVAILABLE");
  EXPECT_THAT(refused.error_message(), HasSubstr("MiB free"));
  ExpectBackup();
  // A model that learns is rolled back to what is durable.
  RawLearnStream stream(*learning_, "m", "p");
  stream.Send(stream.first());
  stream.Send(Example(kExamples));
  EXPECT_EQ(Reason(stream.Finish()), "JOURNAL_UNAVAILABLE");
  ExpectReads();
  Free();
  // The server looks once a second.
  while (!Change().ok()) {
  }
  EXPECT_EQ(Metric("perceptrond_journal_read_only"), "0");
  RawLearnStream again(*learning_, "m", "p");
  EXPECT_EQ(again.Open().next_offset(), kExamples);
  SendExamples(again, kExamples, kExamples + 10);
  EXPECT_TRUE(again.Finish().ok());
  EXPECT_EQ(Delete(), "OK");
}

TEST_F(FullDiskTest, ADeletionIsCarriedOutInTheReserve) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  LearnSome();
  const std::string snapshot = "model: 'models/m' snapshot_id: 'kept'";
  ASSERT_EQ(Call("HistoryService/CreateSnapshot", snapshot), "OK");
  FillButSome();
  server_->Terminate();
  StartOn(home());
  ExpectReads();
  EXPECT_EQ(Reason(Change()), "JOURNAL_UNAVAILABLE");
  EXPECT_EQ(Call("HistoryService/DeleteSnapshot", snapshot), "OK");
  EXPECT_EQ(Delete(), "OK");
}

TEST_F(FullDiskTest, ARestoreWithoutSpaceLeavesNoJournalAndCanBeRepeated) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  StartOn(home(), {"--backup-dir", backups()});
  Create("m");
  LearnExamples("m", kExamples);
  EXPECT_EQ(Call("BackupService/CreateBackup", ""), "OK");
  server_->Terminate();
  Fill();
  const std::string restored = disk() + "/restored";
  const std::string restore = absl::StrCat("restore ", backups(), " ", restored);
  RunToEnd(1, restore);
  EXPECT_FALSE(fs::exists(restored + "/CURRENT"));
  EXPECT_FALSE(fs::exists(restored + "/restoring"));
  // A restore that is killed leaves it.
  fs::create_directories(restored + "/restoring/rest");
  Free();
  RunToEnd(0, restore);
  RunToEnd(0, "verify " + restored);
  EXPECT_FALSE(fs::exists(restored + "/restoring"));
}

// Once more than the rest of the disk may be written.
TEST_F(FullDiskTest, ADeletionIsCarriedOutAfterARestartOnADiskWithoutAByte) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  for (const bool killed : {false, true}) {
    LearnSome();
    Fill();
    if (killed) {
      server_->Kill();
    } else {
      server_->Terminate();
    }
    // The files that the process had open are released.
    Fill();
    StartOn(home());
    ExpectReads();
    EXPECT_EQ(Reason(Change()), "JOURNAL_UNAVAILABLE");
    EXPECT_EQ(Delete(), "OK");
    EXPECT_FALSE(fs::exists(home() + "/RESERVE"));
    // As before, but without the model.
    server_->Kill();
    StartOn(home());
    EXPECT_EQ(Delete(), "NOT_FOUND MODEL_NOT_FOUND");
    Free();
    server_->Terminate();
    StartOn(home());
    EXPECT_TRUE(fs::exists(home() + "/RESERVE"));
    server_->Terminate();
    RunToEnd(0, "verify " + home());
  }
}

TEST_F(FullDiskTest, AReadOnlyDiskIsServed) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  LearnSome();
  server_->Kill();
  ASSERT_TRUE(Remount(MS_RDONLY)) << strerror(errno);
  StartOn(home());
  ExpectReads();
  const grpc::Status refused = Change();
  EXPECT_EQ(Reason(refused), "JOURNAL_UNAVAILABLE");
  EXPECT_THAT(refused.error_message(), HasSubstr("cannot be written"));
  ASSERT_TRUE(Remount(0)) << strerror(errno);
  while (!Change().ok()) {
  }
}

TEST_F(FullDiskTest, ModelsCanBeBackedUpToAnotherDisk) {
  if (!Mount()) GTEST_SKIP() << "cannot mount a file system: " << strerror(errno);
  LearnSome();
  server_->Terminate();
  StartOn(home(), {"--backup-dir", backups()});
  Fill();
  ExpectBackup();
}

TEST_F(StorageTest, FilesAreForTheirOwnerAloneWhateverTheUmask) {
  const mode_t before = umask(0);
  Start({"--backup-dir", backups(), "--address", "unix:" + dir_.path() + "/socket"});
  umask(before);
  Create("m");
  EXPECT_EQ(Call("BackupService/CreateBackup", ""), "OK");
  for (const std::string& root : {data(), backups()}) {
    struct stat info {};
    ASSERT_EQ(stat(root.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U) << root;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777, S_ISDIR(info.st_mode) ? 0700U : 0600U) << entry.path();
    }
  }
  // The umask decides who may connect to the socket.
  struct stat info {};
  ASSERT_EQ(stat((dir_.path() + "/socket").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777U);
}

}  // namespace
}  // namespace perceptrond::testing
