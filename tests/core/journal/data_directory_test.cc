// A journal writes to its own directory, or to an empty one.
#include "core/journal/rocksdb/data_directory.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/journal/on_disk.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kRecords;
using testing::OnDisk;
using testing::Open;
using testing::ReadRecords;

class DataDirectoryTest : public OnDisk {
 protected:
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns all files with their content.
  static std::map<std::string, std::string> Content(const std::string& directory) {
    std::map<std::string, std::string> content;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.is_regular_file()) content[entry.path().filename()] = Read(entry.path());
    }
    return content;
  }
  std::string Empty() {
    const std::string directory = home() + "-empty";
    fs::create_directory(directory);
    return directory;
  }
  static void ExpectRefused(const std::string& directory, const std::string& why) {
    const auto before = Content(directory);
    const absl::Status status = Open(directory).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(directory), HasSubstr(why)));
    EXPECT_EQ(Content(directory), before);
  }
  // The number of records.
  static uint64_t Records(const std::string& directory) {
    const auto journal = Open(directory);
    EXPECT_OK(journal.status());
    if (!journal.ok()) return 0;
    const auto header = (*journal)->Find("a");
    EXPECT_OK(header.status());
    const auto records = ReadRecords(**journal, header->id());
    EXPECT_OK(records.status());
    return records->size();
  }
};

TEST_F(DataDirectoryTest, AJournalWithoutItsCurrentFileIsRefusedAndKeepsItsTables) {
  MoveToTable();
  for (const bool marked : {true, false}) {
    const std::string directory = Copy();
    fs::remove(directory + "/CURRENT");
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".log") fs::remove(entry.path());
    }
    if (!marked) fs::remove(directory + "/JOURNAL");
    ExpectRefused(directory, marked ? "CURRENT is gone" : "is neither empty nor a journal");
    fs::copy_file(home() + "/CURRENT", directory + "/CURRENT");
    EXPECT_EQ(Records(directory), kRecords);
  }
}

TEST_F(DataDirectoryTest, ADirectoryWithItsMarkerAloneOrWithOtherFilesIsRefused) {
  const std::string directory = Empty();
  fs::copy_file(home() + "/JOURNAL", directory + "/JOURNAL");
  ExpectRefused(directory, "CURRENT is gone");
  fs::remove(directory + "/JOURNAL");
  Write(directory + "/notes.txt", "mine");
  ExpectRefused(directory, "notes.txt");
}

TEST_F(DataDirectoryTest, ADatabaseOfAnotherProgramIsRefused) {
  const std::string directory = Empty();
  EXPECT_TRUE(testing::OpenRaw(directory)->Put(rocksdb::WriteOptions(), "theirs", "1").ok());
  const absl::Status status = Open(directory).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  std::string value;
  EXPECT_TRUE(testing::OpenRaw(directory)->Get(rocksdb::ReadOptions(), "theirs", &value).ok());
}

TEST_F(DataDirectoryTest, AnEmptyVolumeIsTakenAndSoIsWhatACrashLeftOfAFirstStart) {
  const std::string directory = Empty();
  fs::create_directory(directory + "/lost+found");
  for (const char* left : {"LOG", "IDENTITY", "MANIFEST-000001", "000001.dbtmp", "JOURNAL.new"})
    Write(directory + "/" + left, "");
  EXPECT_OK(Open(directory).status());
  EXPECT_OK(Open(directory).status());
}

TEST_F(DataDirectoryTest, ALostMarkerIsMadeAgainWithTheSameId) {
  const std::string marker = Read(home() + "/JOURNAL");
  fs::remove(home() + "/JOURNAL");
  EXPECT_EQ(Records(home()), kRecords);
  EXPECT_EQ(Read(home() + "/JOURNAL"), marker);
}

TEST_F(DataDirectoryTest, TheMarkerOfAnotherJournalIsRefused) {
  const std::string other = Empty();
  ASSERT_OK(Open(other).status());
  EXPECT_NE(Read(other + "/JOURNAL"), Read(home() + "/JOURNAL"));
  fs::copy_file(other + "/JOURNAL", home() + "/JOURNAL", fs::copy_options::overwrite_existing);
  const absl::Status status = Open(home()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("mixed"));
}

TEST_F(DataDirectoryTest, AMarkerOfANewerVersionOrOfNoneIsRefused) {
  const std::string marker = Read(home() + "/JOURNAL");
  Write(home() + "/JOURNAL", "perceptrond journal, format 2\nid 00\n");
  ExpectRefused(home(), "use a newer server");
  for (const char* text : {"", "perceptrond journal, format 1\n",
                           "perceptrond journal, format 0\nid 00\n", "something else\nid 00\n"}) {
    Write(home() + "/JOURNAL", text);
    ExpectRefused(home(), "is not what perceptrond writes there");
  }
  Write(home() + "/JOURNAL", marker + std::string(1000, 'x'));
  ExpectRefused(home(), "is not what perceptrond writes there");
}

TEST_F(DataDirectoryTest, ADirectoryIsForItsUserAlone) {
  fs::permissions(home(), fs::perms(0755));
  for (const std::string& directory : {home(), home() + "-new/below"}) {
    ASSERT_OK(Open(directory).status());
    EXPECT_EQ(fs::status(directory).permissions(), fs::perms::owner_all);
  }
}

}  // namespace
}  // namespace perceptrond
