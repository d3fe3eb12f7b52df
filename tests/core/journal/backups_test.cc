// Backups whose metadata, of which RocksDB keeps no checksum, was changed.
#include "core/journal/rocksdb/backups.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/core/journal/on_disk.h"

namespace perceptrond::backups_test {
namespace {

namespace fs = std::filesystem;
using testing::CommitOne;
using ::testing::HasSubstr;
using testing::kRecords;
using testing::kRows;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::OnDisk;
using testing::Open;

class BackupMetadata : public OnDisk {
 protected:
  BackupMetadata() {
    const auto journal = Open(home()).value();
    const auto entry = MakeEntry(journal->Find("a")->id(), {MakeRecord(kRecords * kRows + 1, 1)});
    EXPECT_OK(CommitOne(*journal, entry));
    EXPECT_OK(journal->BackUp(backups_, /*keep=*/0).status());
    whole_ = Lines();
  }

  std::vector<std::string> Lines() const {
    std::ifstream file(meta_);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return absl::StrSplit(text, '\n');
  }
  void Write(const std::vector<std::string>& lines) {
    std::ofstream(meta_) << absl::StrJoin(lines, "\n");
  }
  static std::string AppMetadata(const std::string& text) {
    return "metadata " + absl::AsciiStrToUpper(absl::BytesToHexString(text));
  }
  void WriteLine(size_t number, const std::string& line) {
    std::vector<std::string> lines = whole_;
    lines.at(number) = line;
    Write(lines);
  }
  absl::Status Restore() {
    fs::remove_all(restored_);
    return backups_.Restore(1, restored_);
  }

  const std::string directory_ = home() + "-backups";
  const std::string restored_ = home() + "-restored";
  const std::string meta_ = directory_ + "/meta/1";
  const Backups backups_{directory_};
  // Time, sequence, what the server adds, number of files; and the files.
  std::vector<std::string> whole_;
};

TEST_F(BackupMetadata, ThatWasNotWrittenByTheServerIsListedAsDamagedAndNotUsed) {
  const Backup whole = backups_.List()->at(0);
  ASSERT_FALSE(whole.damaged);
  ASSERT_EQ(whole_.at(2), AppMetadata(absl::StrCat(whole.journal_id, " ", whole.sequence)));
  for (const std::string& text :
       {std::string("x"), whole.journal_id, absl::StrCat(whole.journal_id, " "),
        absl::StrCat(whole.journal_id, " x"), absl::StrCat(whole.journal_id, " 0", whole.sequence),
        absl::StrCat(whole.journal_id, " ", whole.sequence, " "), absl::StrCat(" ", whole.sequence),
        absl::StrCat("\xff ", whole.sequence)}) {
    SCOPED_TRACE(text);
    WriteLine(2, AppMetadata(text));
    EXPECT_TRUE(backups_.List()->at(0).damaged);
    EXPECT_TRUE(absl::IsDataLoss(backups_.Verify(1)));
    EXPECT_TRUE(absl::IsDataLoss(Restore()));
    EXPECT_FALSE(fs::exists(restored_));
    // Nor does it say whose backups the directory has.
    EXPECT_OK(backups_.Prepare("another"));
  }
  // A time that no message can have, and a format that RocksDB does not know.
  for (const char* const line : {"18446744073709551615", "253402300800", "schema_version 9"}) {
    WriteLine(0, line);
    EXPECT_TRUE(backups_.List()->at(0).damaged) << line;
    EXPECT_TRUE(absl::IsDataLoss(Restore())) << line;
  }
  Write(whole_);
  EXPECT_OK(backups_.Verify(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(backups_.Prepare("another")));
  EXPECT_OK(Restore());
}

// Without a log RocksDB opens what is left, and without CURRENT it begins a database.
TEST_F(BackupMetadata, ABackupThatLacksWhatItsJournalHadIsNotRestored) {
  for (const char* const kind : {".log ", "/CURRENT "}) {
    std::vector<std::string> lines = whole_;
    EXPECT_EQ(std::erase_if(lines,
                            [&](const std::string& line) { return absl::StrContains(line, kind); }),
              1U);
    lines.at(3) = absl::StrCat(std::stoi(lines.at(3)) - 1);
    Write(lines);
    EXPECT_FALSE(backups_.List()->at(0).damaged);
    const absl::Status refused = Restore();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << kind << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("backup 1")) << kind;
    EXPECT_FALSE(fs::exists(restored_ + "/CURRENT")) << kind;
  }
}

// Its log would be read as one of this backup.
TEST_F(BackupMetadata, ABackupThatListsAFileOfAnotherIsDamaged) {
  ASSERT_OK(Open(home()).value()->BackUp(backups_, /*keep=*/0).status());
  ASSERT_TRUE(fs::exists(directory_ + "/private/2/CURRENT"));
  std::vector<std::string> lines = whole_;
  const auto current = std::ranges::find_if(
      lines, [](const std::string& line) { return absl::StartsWith(line, "private/1/CURRENT "); });
  ASSERT_NE(current, lines.end());
  std::ifstream meta(directory_ + "/meta/2");
  for (std::string line; std::getline(meta, line);)
    if (absl::StartsWith(line, "private/2/CURRENT ")) *current = line;
  Write(lines);
  EXPECT_TRUE(backups_.List()->at(0).damaged);
  EXPECT_TRUE(absl::IsDataLoss(Restore()));
  EXPECT_FALSE(backups_.List()->at(1).damaged);
}

TEST_F(BackupMetadata, ABackupOfAnotherJournalThanItSaysIsNotRestored) {
  const Backup whole = backups_.List()->at(0);
  WriteLine(2, AppMetadata(absl::StrCat("0123456789abcdef ", whole.sequence)));
  EXPECT_FALSE(backups_.List()->at(0).damaged);
  EXPECT_TRUE(absl::IsDataLoss(Restore()));
}

}  // namespace
}  // namespace perceptrond::backups_test
