// What a journal in a table does when commits fail, others write, and logs are not what they were.
#include "core/journal/table_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/journal/memory_table.h"
#include "tests/support/journals.h"
#include "tests/support/status.h"

namespace perceptrond::table_journal_test {
namespace {

using testing::CommitOne;
using testing::CreateModel;
using testing::MakeAlias;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::MakeState;

class TableJournalTest : public ::testing::Test {
 protected:
  static TableJournal::Options MakeOptions() {
    TableJournal::Options options;
    options.held_bytes = 1 << 20;
    options.exclusion_time = absl::ZeroDuration();
    return options;
  }
  std::unique_ptr<TableJournal> Open(const TableJournal::Options& options = MakeOptions()) {
    auto journal = TableJournal::Open(table_.OpenAgain(), options);
    EXPECT_OK(journal.status());
    return *std::move(journal);
  }

  MemoryTable table_;
};

TEST_F(TableJournalTest, AJournalThatIsOnlyReadIsNotCreated) {
  TableJournal::Options options = MakeOptions();
  options.read_only = true;
  EXPECT_TRUE(absl::IsNotFound(TableJournal::Open(table_.OpenAgain(), options).status()));
  EXPECT_FALSE(table_.Get("m/format")->has_value());
}

TEST_F(TableJournalTest, AJournalThatIsOnlyReadRefusesChanges) {
  const auto writer = Open();
  const storage::ModelHeader header = CreateModel(*writer, "a");
  const uint64_t id = header.id();
  ASSERT_OK(CommitOne(*writer, MakeEntry(id, {MakeRecord(1, 1)})));
  TableJournal::Options options = MakeOptions();
  options.read_only = true;
  const auto reader = Open(options);
  EXPECT_EQ(reader->Find("a")->id(), id);
  EXPECT_EQ(reader->LoadCounters(id)->report().updates(), 1U);
  const JournalEntry entry = MakeEntry(id, {MakeRecord(2, 1)});
  storage::ModelHeader other;
  other.mutable_model()->set_name("b");
  storage::KeptSnapshot kept;
  for (const absl::Status& status :
       {reader->Create(other), reader->Replace(header, header), reader->Delete("a"),
        reader->PutAlias(MakeAlias("alias", "a", "1"), ""), CommitOne(*reader, entry),
        reader->TakeOver(0, "address", 1).status(), reader->SaveSnapshot(id, MakeState(1, 1)),
        reader->SaveKept(id, MakeState(1, 1), kept), reader->DropAfter(id, 0),
        reader->DeleteKept(id, kept)})
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(TableJournalTest, WhoeverExcludesOthersIsRefusedWhileTheyAnnounceThemselves) {
  const auto other = Open();
  TableJournal::Options options = MakeOptions();
  options.read_only = true;
  options.exclusion_time = absl::InfiniteDuration();
  const auto reader = Open(options);
  std::atomic<bool> done = false;
  std::thread heartbeats([&] {
    while (!done) ASSERT_OK(other->Announce("here"));
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(reader->ExcludeOthers()));
  done = true;
  heartbeats.join();
}

TEST_F(TableJournalTest, WhoWasExcludedWritesNothing) {
  const auto other = Open();
  const uint64_t id = CreateModel(*other, "a").id();
  ASSERT_OK(other->TakeOver(0, "other", other->LastSequence(0).value()).status());
  TableJournal::Options options = MakeOptions();
  options.read_only = true;
  ASSERT_OK(Open(options)->ExcludeOthers());
  const JournalEntry entry = MakeEntry(id, {MakeRecord(1, 1)});
  EXPECT_TRUE(other->Commit({&entry, 1}, {})->stale);
}

TEST_F(TableJournalTest, AnImportExcludesOthers) {
  const auto other = Open();
  ASSERT_OK(other->TakeOver(0, "other", other->LastSequence(0).value()).status());
  TableJournal::Options options = MakeOptions();
  options.import = ImportOptions{"id", ""};
  const auto copy = Open(options);
  const uint64_t last = copy->LastSequence(0).value();
  ASSERT_OK(copy->BeginImport());
  EXPECT_GT(copy->LastSequence(0).value(), last);
}

}  // namespace
}  // namespace perceptrond::table_journal_test
