// A log that ends before its end: noticed, reported, and gone on without only if that is accepted.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb/watermark.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/journal/on_disk.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;
using testing::CommitOne;
using testing::CreateModel;
using ::testing::HasSubstr;
using testing::kRecords;
using testing::kRows;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::OnDisk;
using testing::Open;
using testing::ReadRecords;

fs::path Log(const std::string& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log" && fs::file_size(entry.path()) > 0) return entry.path();
  }
  return {};
}

void CutLog(const std::string& directory, uintmax_t bytes) {
  fs::resize_file(Log(directory), fs::file_size(Log(directory)) - bytes);
}

std::map<std::string, uintmax_t> Logs(const std::string& directory) {
  std::map<std::string, uintmax_t> logs;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") logs[entry.path()] = fs::file_size(entry.path());
  }
  return logs;
}

absl::StatusOr<std::unique_ptr<RocksDbJournal>> OpenWith(const std::string& directory,
                                                         bool accept_data_loss,
                                                         const std::string& boot_id = "") {
  RocksDbJournal::Options options;
  options.directory = directory;
  options.accept_data_loss = accept_data_loss;
  options.boot_id = boot_id;
  return RocksDbJournal::Open(options);
}

uint64_t Records(Journal& journal) {
  return ReadRecords(journal, journal.Find("a")->id()).value().size();
}

class LogEnd : public OnDisk {
 protected:
  // A process writes records to a copy of the journal, and is killed. Returns the directory.
  std::string KilledAfter(int records, bool sync, const std::string& boot_id = "") {
    const std::string directory = Copy();
    const pid_t child = fork();
    if (child == 0) {
      const auto journal = OpenWith(directory, false, boot_id);
      const uint64_t id = (*journal)->Find("a")->id();
      for (uint64_t i = kRecords; i < kRecords + records; ++i) {
        const JournalEntry entry = MakeEntry(id, {MakeRecord(i * kRows + 1, kRows)});
        if (!CommitOne(**journal, entry, sync).ok()) _exit(1);
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    return directory;
  }
};

TEST_F(LogEnd, OfAClosedJournalIsRefusedWhereverItIsCutAndNothingIsChanged) {
  const uintmax_t size = fs::file_size(Log(home()));
  for (const uintmax_t cut : {uintmax_t{1}, uintmax_t{7}, size / 2, size - 1, size}) {
    const std::string copy = Copy();
    CutLog(copy, cut);
    const auto before = Logs(copy);
    const absl::Status status = Open(copy).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << "cut " << cut << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--accept-data-loss"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(copy));
    EXPECT_EQ(Logs(copy), before);
  }
}

TEST_F(LogEnd, IsUsedIfTheLossIsAccepted) {
  const std::string copy = KilledAfter(10, true);
  CutLog(copy, fs::file_size(Log(copy)) / 2);
  ASSERT_TRUE(absl::IsDataLoss(Open(copy).status()));
  {
    const auto journal = OpenWith(copy, true);
    ASSERT_OK(journal.status());
    EXPECT_LT(Records(**journal), kRecords + 10);
    EXPECT_GE(Records(**journal), kRecords);
    EXPECT_GT((*journal)->Stats().lost_writes, 0U);
  }
  // Once accepted it is forgotten.
  const auto journal = Open(copy);
  ASSERT_OK(journal.status());
  EXPECT_EQ((*journal)->Stats().lost_writes, 0U);
}

TEST_F(LogEnd, OfAKilledProcessIsKnownToTheLastCommitSyncedOrNot) {
  for (const bool sync : {true, false}) {
    const std::string copy = KilledAfter(50, sync);
    {
      const auto journal = Open(copy);
      ASSERT_OK(journal.status());
      EXPECT_EQ(Records(**journal), kRecords + 50);
    }
    const std::string cut = KilledAfter(50, sync);
    CutLog(cut, 10);
    EXPECT_TRUE(absl::IsDataLoss(Open(cut).status())) << sync;
  }
}

TEST_F(LogEnd, MayLackWhatWasNotSyncedAfterTheMachineStartedAnew) {
  const std::string unsynced = KilledAfter(50, false, "boot-1");
  CutLog(unsynced, 10);
  {
    const auto journal = OpenWith(unsynced, false, "boot-2");
    ASSERT_OK(journal.status());
    EXPECT_EQ(Records(**journal), kRecords + 49);
  }
  const std::string synced = KilledAfter(50, true, "boot-1");
  CutLog(synced, 10);
  EXPECT_TRUE(absl::IsDataLoss(OpenWith(synced, false, "boot-2").status()));
}

// The watermark may be as old as the log: what is missing need not be known.
TEST_F(LogEnd, OfAcknowledgedUpdatesThatWereNotSyncedMayBeEarlyAfterAPowerFailure) {
  for (const uintmax_t cut : {0, 10}) {
    const std::string copy = KilledAfter(50, false, "boot-1");
    CutLog(copy, cut);
    {
      const auto journal = OpenWith(copy, false, "boot-2");
      ASSERT_OK(journal.status());
      EXPECT_TRUE((*journal)->Stats().may_lack_updates);
      EXPECT_EQ((*journal)->Stats().lost_writes > 0, cut > 0);
    }
    // It is known once.
    const auto again = OpenWith(copy, false, "boot-3");
    ASSERT_OK(again.status());
    EXPECT_FALSE((*again)->Stats().may_lack_updates);
  }
}

TEST_F(LogEnd, LacksNothingAcknowledgedAfterAKillOrOfSyncedUpdates) {
  const auto expect_whole = [&](const std::string& directory, const std::string& boot) {
    const auto journal = OpenWith(directory, false, boot);
    ASSERT_OK(journal.status());
    EXPECT_FALSE((*journal)->Stats().may_lack_updates);
  };
  // The process was killed, and the machine went on.
  expect_whole(KilledAfter(50, false, "boot-1"), "boot-1");
  // Every update was synced; counters that no update changed may be missing.
  expect_whole(KilledAfter(50, true, "boot-1"), "boot-2");
  // The journal was closed, which syncs it.
  const std::string closed = Copy();
  {
    const auto journal = OpenWith(closed, false, "boot-1");
    const uint64_t id = (*journal)->Find("a")->id();
    ASSERT_OK(CommitOne(**journal, MakeEntry(id, {MakeRecord(kRecords * kRows + 1, 1)}), false));
  }
  expect_whole(closed, "boot-2");
}

TEST_F(LogEnd, OfAMissingLogIsRefused) {
  fs::remove(Log(home()));
  EXPECT_TRUE(absl::IsDataLoss(Open(home()).status()));
  ASSERT_OK(OpenWith(home(), true).status());
}

TEST_F(LogEnd, OfZerosIsRefused) {
  const fs::path log = Log(home());
  const uintmax_t size = fs::file_size(log);
  fs::resize_file(log, size - 1000);
  fs::resize_file(log, size);
  EXPECT_TRUE(absl::IsDataLoss(Open(home()).status()));
}

TEST_F(LogEnd, ThatNoWatermarkTellsIsRefused) {
  fs::remove(home() + "/WATERMARK");
  CutLog(home(), 10);
  const absl::Status refused = Open(home()).status();
  EXPECT_TRUE(absl::IsDataLoss(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--accept-data-loss=yes"));
  const auto journal = OpenWith(home(), true);
  ASSERT_OK(journal.status());
  EXPECT_EQ(Records(**journal), kRecords - 1);
}

TEST_F(LogEnd, OneWholeSlotOfAWatermarkIsEnough) {
  const std::string path = home() + "/WATERMARK";
  const uintmax_t size = fs::file_size(path);
  // One of the two slots.
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.put('x');
  }
  EXPECT_OK(Open(home()).status());
  fs::resize_file(path, 100);
  EXPECT_TRUE(absl::IsDataLoss(Open(home()).status()));
  EXPECT_OK(OpenWith(home(), true).status());
  EXPECT_EQ(fs::file_size(path), size);
}

TEST_F(LogEnd, AnIdThatLooksLikeTheChecksumsNameIsKept) {
  Watermark mark;
  mark.id = "crc";
  const std::string directory = Copy();
  ASSERT_OK(WatermarkFile::Create(rocksdb::Env::Default(), directory, mark).status());
  const auto read = WatermarkFile::Read(rocksdb::Env::Default(), directory).value();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->id, "crc");
}

TEST_F(LogEnd, NoMoreThanTheTwoSlotsOfAWatermarkIsRead) {
  const auto has_mark = [](const std::string& directory) {
    return WatermarkFile::Read(rocksdb::Env::Default(), directory).value().has_value();
  };
  const std::string copy = Copy();
  EXPECT_TRUE(has_mark(copy));
  // Behind two slots that are none.
  std::ofstream(copy + "/WATERMARK", std::ios::binary)
      << std::string(1024, ' ') << std::ifstream(home() + "/WATERMARK").rdbuf();
  EXPECT_FALSE(has_mark(copy));
}

TEST_F(LogEnd, IsKnownAlsoWhenSeveralThreadsWriteAtOnce) {
  const std::string directory = home() + "-threads";
  uint64_t written = 0;
  {
    RocksDbJournal::Options options;
    options.directory = directory;
    options.write_buffer_bytes = 64 << 10;
    auto journal = RocksDbJournal::Open(options);
    ASSERT_OK(journal.status());
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) CreateModel(**journal, absl::StrCat("model-", t, "-", i));
      });
    }
    for (std::thread& thread : threads) thread.join();
    written = (*journal)->Count().value();
  }
  EXPECT_EQ(written, 200U);
  ASSERT_OK(Open(directory).status());
  const std::string text = [&] {
    std::ifstream file(directory + "/WATERMARK");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  // Four rows each, besides the three that a journal begins with.
  EXPECT_THAT(text, HasSubstr("written 803"));
}

}  // namespace
}  // namespace perceptrond
