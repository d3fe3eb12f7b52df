// What a journal in a table does when commits fail, others write, and logs are not what they were.
#include "core/journal/table_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/memory_table.h"
#include "core/journal/table_keys.h"
#include "tests/support/journals.h"
#include "tests/support/status.h"
#include "tests/support/wait_until.h"

namespace perceptrond::table_journal_test {
namespace {

using testing::CommitOne;
using testing::CreateModel;
using ::testing::ElementsAre;
using testing::LastRevisions;
using testing::MakeAlias;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::MakeState;
using testing::ReadRecords;

// A table of which a test decides what becomes of commits, and which log it has.
class TestTable final : public Table {
 public:
  struct Control {
    // Makes a commit instead of the table.
    std::function<absl::StatusOr<bool>(Table& base, const TableChange& change)> commit;
    std::atomic<bool> is_away = false;
    // The error that it then has.
    std::atomic<absl::StatusCode> away = absl::StatusCode::kUnavailable;
    // Waits for commits without end.
    std::atomic<bool> is_patient = false;
    std::atomic<int> waits = 0;
    std::atomic<int> scans = 0;
    std::shared_ptr<Table> base() {
      MutexLock lock(&mutex);
      return table;
    }
    // As after a fail-over to a server that does not have all commits.
    void FailOver(std::shared_ptr<Table> to) {
      MutexLock lock(&mutex);
      table = std::move(to);
      ++fail_overs;
    }

    Mutex mutex;
    std::shared_ptr<Table> table ABSL_GUARDED_BY(mutex);
    std::atomic<uint64_t> fail_overs = 0;
  };
  explicit TestTable(std::shared_ptr<Control> control) : control_(std::move(control)) {}

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override {
    if (control_->is_away) return absl::Status(control_->away, "away");
    return control_->base()->Get(key);
  }
  absl::Status Scan(const KeyRange& range, OnRow on_row) override {
    ++control_->scans;
    if (control_->is_away) return absl::Status(control_->away, "away");
    return control_->base()->Scan(range, on_row);
  }
  absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) override {
    if (control_->is_away) return absl::Status(control_->away, "away");
    return control_->base()->Freeze(ranges);
  }
  absl::StatusOr<bool> Commit(const TableChange& change, bool sync) override {
    const std::shared_ptr<Table> base = control_->base();
    // It may set another one.
    const auto commit = control_->commit;
    return commit != nullptr ? commit(*base, change) : base->Commit(change, sync);
  }
  absl::Status Sync() override { return absl::OkStatus(); }
  uint64_t AwaitCommit(uint64_t seen, absl::Duration timeout) override {
    if (control_->is_patient) timeout = absl::InfiniteDuration();
    ++control_->waits;
    const uint64_t before = control_->fail_overs * 1'000'000;
    return control_->base()->AwaitCommit(std::max(seen, before) - before, timeout) + before;
  }
  void Close() override { control_->base()->Close(); }
  absl::Status Announce(absl::string_view message) override {
    return control_->base()->Announce(message);
  }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    control_->base()->Listen(std::move(listener));
  }

 private:
  const std::shared_ptr<Control> control_;
};

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

  // On a table that control_ is of.
  std::unique_ptr<TableJournal> OpenControlled() {
    control_->FailOver(table_.OpenAgain());
    auto journal = TableJournal::Open(std::make_unique<TestTable>(control_), MakeOptions());
    EXPECT_OK(journal.status());
    return *std::move(journal);
  }
  // Another table with the rows that table_ has now.
  std::unique_ptr<MemoryTable> Copy() {
    TableChange change;
    EXPECT_OK(table_.Scan({"", "z"}, [&](absl::string_view key, absl::string_view value) {
      change.puts.push_back({std::string(key), std::string(value)});
      return true;
    }));
    auto copy = std::make_unique<MemoryTable>();
    EXPECT_TRUE(*copy->Commit(change, true));
    return copy;
  }
  static std::unique_ptr<TableJournal> OpenCopy(const MemoryTable& copy) {
    auto journal = TableJournal::Open(copy.OpenAgain(), MakeOptions());
    EXPECT_OK(journal.status());
    return *std::move(journal);
  }
  static void TakeOver(Journal& journal, const std::string& address) {
    const auto taken = journal.TakeOver(0, address, journal.LastSequence(0).value());
    ASSERT_OK(taken.status());
    ASSERT_FALSE(taken->stale);
  }
  static absl::StatusOr<CommitOutcome> Commit(Journal& journal, uint64_t id, uint64_t revision) {
    const JournalEntry entry = MakeEntry(id, {MakeRecord(revision, 1)});
    return journal.Commit({&entry, 1}, {});
  }
  static std::vector<uint64_t> Revisions(Journal& journal, uint64_t id) {
    return LastRevisions(ReadRecords(journal, id).value());
  }
  int CountRowsOf(uint64_t id) {
    int rows = 0;
    EXPECT_OK(table_.Scan(table_keys::AllOf(table_keys::Model(id)), [&](auto, auto) {
      ++rows;
      return true;
    }));
    return rows;
  }

  MemoryTable table_;
  const std::shared_ptr<TestTable::Control> control_ = std::make_shared<TestTable::Control>();
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
        reader->SaveKept(id, MakeState(1, 1), kept), reader->DropAfter(id, 0)})
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

TEST_F(TableJournalTest, WhoeverExcludesOthersTwiceIsRefusedIfTheyHaveWrittenMeanwhile) {
  const auto journal = Open();
  ASSERT_OK(journal->ExcludeOthers());
  ASSERT_OK(journal->ExcludeOthers());
  const auto other = Open();
  CreateModel(*other, "m");
  EXPECT_TRUE(absl::IsFailedPrecondition(journal->ExcludeOthers()));
  const auto next = Open();
  ASSERT_OK(next->ExcludeOthers());
  TakeOver(*other, "other");
  EXPECT_TRUE(absl::IsFailedPrecondition(next->ExcludeOthers()));
}

TEST_F(TableJournalTest, VerifyKnowsWhichEntriesWereDropped) {
  TableJournal::Options options = MakeOptions();
  options.held_bytes = 500;
  const auto journal = Open(options);
  TakeOver(*journal, "one");
  const uint64_t id = CreateModel(*journal, "m").id();
  for (uint64_t revision = 1; revision <= 50; ++revision) {
    ASSERT_OK(Commit(*journal, id, revision).status());
    EXPECT_OK(journal->Verify());
  }
  EXPECT_FALSE(table_.Get(table_keys::Entry(0, 2))->has_value());
}

TEST_F(TableJournalTest, VerifyFindsEntriesThatAreMissingOrDamagedAndEndsThatNameOthers) {
  const auto journal = Open();
  TakeOver(*journal, "one");
  const uint64_t id = CreateModel(*journal, "m").id();
  for (uint64_t revision = 1; revision <= 3; ++revision)
    ASSERT_OK(Commit(*journal, id, revision).status());
  EXPECT_OK(journal->Verify());
  const auto damage = [&](const std::string& key, const std::function<void(std::string&)>& what) {
    const std::string value = *table_.Get(key).value();
    TableChange change;
    std::string damaged = value;
    what(damaged);
    if (damaged.empty()) {
      change.deletions.push_back(table_keys::Only(key));
    } else {
      change.puts.push_back({key, damaged});
    }
    ASSERT_TRUE(*table_.Commit(change, true));
    EXPECT_TRUE(absl::IsDataLoss(journal->Verify()));
    TableChange repair;
    repair.puts.push_back({key, value});
    ASSERT_TRUE(*table_.Commit(repair, true));
    EXPECT_OK(journal->Verify());
  };
  // Of the partition, with a take-over before; and of the names.
  for (const std::string& key : {table_keys::Entry(0, 3), table_keys::Entry(1, 1)}) {
    damage(key, [](std::string& value) { value.back() ^= 1; });
    damage(key, [](std::string& value) { value.front() ^= 1; });
    damage(key, [](std::string& value) { value.clear(); });
  }
  damage(table_keys::Entry(0, 4), [](std::string& value) { value.clear(); });
  damage(table_keys::Head(0), [](std::string& value) {
    storage::PartitionHead head;
    ASSERT_TRUE(head.ParseFromString(value));
    head.mutable_hash()->back() ^= 1;
    value = head.SerializeAsString();
  });
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
  options.import = ImportOptions{"id"};
  const auto copy = Open(options);
  const uint64_t last = copy->LastSequence(0).value();
  ASSERT_OK(copy->BeginImport());
  EXPECT_GT(copy->LastSequence(0).value(), last);
}

TEST_F(TableJournalTest, AServerThatCameWhileAnImportBeganIsExcludedToo) {
  const auto other = Open();
  const uint64_t id = CreateModel(*other, "a").id();
  ASSERT_OK(other->Delete("a"));
  control_->FailOver(table_.OpenAgain());
  control_->commit = [&](Table& base, const TableChange& change) {
    const bool begins = !change.puts.empty() && change.puts.front().key == "m/import";
    if (begins) TakeOver(*other, "other");
    return base.Commit(change, true);
  };
  TableJournal::Options options = MakeOptions();
  options.import = ImportOptions{"id"};
  const auto copy = TableJournal::Open(std::make_unique<TestTable>(control_), options);
  ASSERT_OK(copy.status());
  EXPECT_TRUE(absl::IsFailedPrecondition((*copy)->BeginImport()));
  // It is excluded when the import is tried again.
  const auto again = TableJournal::Open(table_.OpenAgain(), options);
  ASSERT_OK(again.status());
  ASSERT_OK((*again)->BeginImport());
  EXPECT_TRUE(Commit(*other, id, 1)->stale);
}

TEST_F(TableJournalTest, ACommitThatWasMadeUnknownCounts) {
  const auto journal = OpenControlled();
  const uint64_t id = CreateModel(*journal, "a").id();
  TakeOver(*journal, "one");
  control_->commit = [&](Table& base, const TableChange& change) -> absl::StatusOr<bool> {
    control_->commit = nullptr;
    EXPECT_TRUE(*base.Commit(change, true));
    return absl::UnknownError("the connection broke");
  };
  const auto outcome = Commit(*journal, id, 1);
  ASSERT_OK(outcome.status());
  EXPECT_FALSE(outcome->stale);
  EXPECT_EQ(outcome->sequence, journal->LastSequence(0).value());
  EXPECT_FALSE(Commit(*journal, id, 2)->stale);
  EXPECT_THAT(Revisions(*journal, id), ElementsAre(1, 2));
}

TEST_F(TableJournalTest, ACommitThatWasNotMadeIsNotMadeLater) {
  const auto journal = OpenControlled();
  const uint64_t id = CreateModel(*journal, "a").id();
  TakeOver(*journal, "one");
  const uint64_t before = journal->LastSequence(0).value();
  TableChange late;
  int commits = 0;
  control_->commit = [&](Table& base, const TableChange& change) -> absl::StatusOr<bool> {
    if (++commits == 1) {
      late = change;
      return absl::UnknownError("the connection broke");
    }
    // The second one settles it.
    if (commits == 3) EXPECT_FALSE(*base.Commit(late, true));
    return base.Commit(change, true);
  };
  EXPECT_FALSE(Commit(*journal, id, 1)->stale);
  control_->commit = nullptr;
  EXPECT_EQ(commits, 3);
  EXPECT_EQ(journal->LastSequence(0).value(), before + 1);
  EXPECT_THAT(Revisions(*journal, id), ElementsAre(1));
}

TEST_F(TableJournalTest, ACommitAfterWhichAnotherServerTookOverStaysUnknown) {
  const auto journal = OpenControlled();
  const auto other = Open();
  const uint64_t id = CreateModel(*journal, "a").id();
  TakeOver(*journal, "one");
  control_->commit = [&](Table& base, const TableChange& change) -> absl::StatusOr<bool> {
    control_->commit = nullptr;
    EXPECT_TRUE(*base.Commit(change, true));
    TakeOver(*other, "two");
    return absl::UnknownError("the connection broke");
  };
  EXPECT_TRUE(absl::IsUnknown(Commit(*journal, id, 1).status()));
  EXPECT_TRUE(Commit(*journal, id, 2)->stale);
  EXPECT_THAT(Revisions(*other, id), ElementsAre(1));
}

// Both took over after the same entry, so that their epochs are equal.
TEST_F(TableJournalTest, AWriterOfAnotherLogWritesNothingEvenWithAnEqualEpoch) {
  const auto journal = OpenControlled();
  const uint64_t id = CreateModel(*journal, "a").id();
  const auto copy = Copy();
  const auto other = OpenCopy(*copy);
  TakeOver(*journal, "one");
  TakeOver(*other, "two");
  for (uint64_t revision = 1; revision <= 2; ++revision) {
    EXPECT_FALSE(Commit(*journal, id, revision)->stale);
    EXPECT_FALSE(Commit(*other, id, revision)->stale);
  }
  control_->FailOver(copy->OpenAgain());
  EXPECT_TRUE(Commit(*journal, id, 3)->stale);
  EXPECT_TRUE(absl::IsUnavailable(journal->SaveSnapshot(id, MakeState(2, 1))));
  storage::KeptSnapshot kept;
  EXPECT_TRUE(absl::IsUnavailable(journal->SaveKept(id, MakeState(2, 1), kept)));
  EXPECT_OK(journal->DropAfter(id, 0));
  EXPECT_THAT(Revisions(*other, id), ElementsAre(1, 2));
  EXPECT_FALSE(Commit(*other, id, 3)->stale);
}

TEST_F(TableJournalTest, ATailSaysThatTheLogIsAnotherOne) {
  // Of the other log; the tail has read two.
  for (const uint64_t entries : {2, 3}) {
    const auto journal = OpenControlled();
    const uint64_t id = CreateModel(*journal, absl::StrCat("a", entries)).id();
    const auto copy = Copy();
    const auto other = OpenCopy(*copy);
    const auto tail = *journal->Tail(0, journal->LastSequence(0).value());
    for (uint64_t revision = 1; revision <= 2; ++revision)
      ASSERT_OK(Commit(*journal, id, revision).status());
    EXPECT_EQ(tail->Next(absl::ZeroDuration())->size(), 2U);
    for (uint64_t revision = 1; revision <= entries; ++revision)
      ASSERT_OK(Commit(*other, id, revision).status());
    control_->FailOver(copy->OpenAgain());
    EXPECT_TRUE(absl::IsOutOfRange(tail->Next(absl::ZeroDuration()).status())) << entries;
  }
}

TEST_F(TableJournalTest, ATailThatBeginsWithinALogNoticesAnotherOne) {
  const auto journal = OpenControlled();
  const uint64_t id = CreateModel(*journal, "a").id();
  const auto copy = Copy();
  const auto other = OpenCopy(*copy);
  for (uint64_t revision = 1; revision <= 2; ++revision) {
    ASSERT_OK(Commit(*journal, id, revision).status());
    ASSERT_OK(Commit(*other, id, revision).status());
  }
  const auto tail = *journal->Tail(0, journal->LastSequence(0).value() - 1);
  control_->FailOver(copy->OpenAgain());
  EXPECT_TRUE(absl::IsOutOfRange(tail->Next(absl::ZeroDuration()).status()));
}

TEST_F(TableJournalTest, NamesOfAnotherLogAreReadAgain) {
  // Created in the other log: it is shorter, as long, or longer.
  for (const int created : {0, 1, 2}) {
    SCOPED_TRACE(created);
    const auto journal = OpenControlled();
    const auto copy = Copy();
    const auto other = OpenCopy(*copy);
    const uint64_t before = journal->Count().value();
    std::vector<std::string> deleted;
    const std::string lost = absl::StrCat("lost", created);
    CreateModel(*journal, lost);
    ASSERT_OK(journal->PutAlias(MakeAlias(lost, lost, "1"), ""));
    journal->WatchModels([&](const storage::ModelHeader& header, bool is_deleted) {
      if (is_deleted) deleted.push_back(header.model().name());
    });
    for (int i = 0; i < created; ++i) CreateModel(*other, absl::StrCat("other", i));
    control_->FailOver(copy->OpenAgain());
    ASSERT_OK(journal->Refresh());
    EXPECT_EQ(journal->Count().value(), before + created);
    EXPECT_FALSE(journal->aliases().Find(lost).has_value());
    CreateModel(*journal, "new");
    EXPECT_OK(other->Find("new").status());
    journal->WatchModels(nullptr);
    EXPECT_THAT(deleted, ElementsAre(lost));
  }
}

TEST_F(TableJournalTest, NamesAreReadAgainWhereTheirChangesWereDropped) {
  TableJournal::Options options = MakeOptions();
  options.held_bytes = 2000;
  const auto other = Open(options);
  for (const char* name : {"gone", "replaced", "stays"}) CreateModel(*other, name);
  ASSERT_OK(other->PutAlias(MakeAlias("old", "stays", "1"), ""));
  const auto journal = OpenControlled();
  std::vector<std::string> deleted;
  std::vector<std::string> present;
  journal->WatchModels([&](const storage::ModelHeader& header, bool is_deleted) {
    (is_deleted ? deleted : present).push_back(header.model().name());
  });
  control_->is_away = true;
  ASSERT_OK(other->Delete("gone"));
  ASSERT_OK(other->Delete("replaced"));
  CreateModel(*other, "replaced");
  ASSERT_OK(other->DeleteAlias("old", "1"));
  ASSERT_OK(other->PutAlias(MakeAlias("new", "stays", "1"), ""));
  for (int i = 0; i < 100; ++i) {
    CreateModel(*other, "short-lived");
    ASSERT_OK(other->Delete("short-lived"));
  }
  control_->is_away = false;
  ASSERT_OK(journal->Refresh());
  EXPECT_EQ(journal->Count().value(), 2U);
  EXPECT_FALSE(journal->aliases().Find("old").has_value());
  EXPECT_TRUE(journal->aliases().Find("new").has_value());
  journal->WatchModels(nullptr);
  EXPECT_THAT(deleted, ElementsAre("gone", "replaced"));
  EXPECT_THAT(present, ElementsAre("replaced", "stays"));
}

TEST_F(TableJournalTest, ModelsAreFoundAndListedAsTheyWereReadLastWhileTheTableIsAway) {
  const auto names = [](Journal& journal, const std::string& after, size_t limit) {
    std::vector<std::string> found;
    const auto headers = journal.List(after, limit).value();
    for (const storage::ModelHeader& header : headers) found.push_back(header.model().name());
    return found;
  };
  const auto other = Open();
  CreateModel(*other, "b");
  // One is there at the start, and others come, change and go later.
  const auto journal = OpenControlled();
  CreateModel(*journal, "a");
  const storage::ModelHeader before = CreateModel(*other, "c");
  CreateModel(*other, "d");
  ASSERT_OK(other->Delete("d"));
  storage::ModelHeader renamed = before;
  renamed.mutable_model()->set_name("e");
  ASSERT_OK(other->Rename(renamed, before));
  ASSERT_OK(journal->Refresh());
  control_->is_away = true;
  EXPECT_THAT(names(*journal, "", 9), ElementsAre("a", "b", "e"));
  EXPECT_THAT(names(*journal, "a", 1), ElementsAre("b"));
  EXPECT_EQ(journal->Find("e")->id(), before.id());
  // It may have been created since.
  EXPECT_TRUE(absl::IsUnavailable(journal->Find("d").status()));
  storage::ModelHeader header;
  header.mutable_model()->set_name("f");
  EXPECT_TRUE(absl::IsUnavailable(journal->Create(header)));
  // Somebody has dropped the schema, or taken the rights to it.
  for (const auto code :
       {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kPermissionDenied}) {
    control_->away = code;
    EXPECT_EQ(journal->Find("e")->id(), before.id());
    EXPECT_THAT(names(*journal, "", 9), ElementsAre("a", "b", "e"));
  }
  // What is there is read again once it can be.
  ASSERT_OK(other->Delete("b"));
  control_->is_away = false;
  testing::WaitUntil([&] { return absl::IsNotFound(journal->Find("b").status()); });
  ASSERT_OK(journal->Refresh());
  EXPECT_EQ(journal->Count().value(), 2U);
}

TEST_F(TableJournalTest, WhatADeadServerLeftOfAModelIsSweptAndThatOfALivingOneStays) {
  const auto journal = Open();
  const auto leave = [this](uint64_t id, absl::Time begun) {
    TableChange change;
    change.puts = {{table_keys::Unfinished(id),
                    table_keys::Number(static_cast<uint64_t>(absl::ToUnixNanos(begun)))},
                   {table_keys::Pieces(id, 1), "piece"}};
    EXPECT_TRUE(*table_.Commit(change, true));
  };
  leave(7, absl::Now() - absl::Hours(2));
  leave(8, absl::Now() - absl::Minutes(10));
  ASSERT_OK(journal->Sweep());
  EXPECT_EQ(CountRowsOf(7), 0);
  EXPECT_EQ(CountRowsOf(8), 1);
  EXPECT_FALSE(table_.Get(table_keys::Unfinished(7))->has_value());
  EXPECT_TRUE(table_.Get(table_keys::Unfinished(8))->has_value());
}

TEST_F(TableJournalTest, NothingIsLeftOfAModelThatIsDeletedWhileItIsWritten) {
  const auto journal = OpenControlled();
  const auto other = Open();
  const std::function<absl::Status(uint64_t id)> writes[] = {
      [&](uint64_t id) { return Commit(*journal, id, 2).status(); },
      [&](uint64_t id) { return journal->SaveSnapshot(id, MakeState(1, 1)); },
      [&](uint64_t id) {
        return journal->SavePredictions(id, {{{1, 2, "row"}}});
      },
  };
  for (const auto& write : writes) {
    // Before its first commit, or its second.
    for (const int at : {1, 2}) {
      const uint64_t id = CreateModel(*journal, "a").id();
      ASSERT_OK(Commit(*journal, id, 1).status());
      int commits = 0;
      control_->commit = [&](Table& base, const TableChange& change) {
        if (++commits == at) EXPECT_OK(other->Delete("a"));
        return base.Commit(change, true);
      };
      EXPECT_OK(write(id));
      control_->commit = nullptr;
      if (commits < at) EXPECT_OK(other->Delete("a"));
      EXPECT_EQ(CountRowsOf(id), 0) << at;
    }
  }
}

TEST_F(TableJournalTest, OfTwoSnapshotsAtOnceOneIsWhole) {
  const auto journal = OpenControlled();
  const auto other = Open();
  const uint64_t id = CreateModel(*journal, "a").id();
  ASSERT_OK(Commit(*journal, id, 1).status());
  const std::string head = table_keys::Of(id, table_keys::Kind::kSnapshot);
  // Once without a snapshot before, once with.
  for (const float weight : {1, 2}) {
    control_->commit = [&](Table& base, const TableChange& change) {
      for (const TableRow& row : change.puts) {
        if (row.key != head) continue;
        control_->commit = nullptr;
        EXPECT_OK(other->SaveSnapshot(id, MakeState(1, weight)));
        return base.Commit(change, true);
      }
      return base.Commit(change, true);
    };
    EXPECT_TRUE(absl::IsUnavailable(journal->SaveSnapshot(id, MakeState(1, 3))));
    const auto found = journal->LoadSnapshot(id);
    ASSERT_OK(found.status());
    EXPECT_EQ((*found)->SerializeAsString(), MakeState(1, weight).SerializeAsString());
  }
}

TEST_F(TableJournalTest, ItsEndDoesNotWaitForACommit) {
  control_->is_patient = true;
  const auto journal = OpenControlled();
  // The first wait ends at once: there are commits.
  testing::WaitUntil([&] { return control_->waits >= 2; });
}

TEST(MemoryTableTest, NothingWaitsOnceItIsClosed) {
  MemoryTable table;
  std::thread waits([&] { table.AwaitCommit(UINT64_MAX, absl::InfiniteDuration()); });
  table.Close();
  waits.join();
}

TEST_F(TableJournalTest, OneReadTellsAllTailsThatTheyAreAtTheEndAndNoErrorStays) {
  TableJournal::Options options = MakeOptions();
  options.partitions = 8;
  control_->FailOver(table_.OpenAgain());
  const auto journal = *TableJournal::Open(std::make_unique<TestTable>(control_), options);
  std::vector<std::unique_ptr<JournalTail>> tails;
  for (uint32_t i = 0; i < options.partitions; ++i)
    tails.push_back(*journal->Tail(i, journal->LastSequence(i).value()));
  const auto all_are_at_the_end = [&] {
    return std::all_of(tails.begin(), tails.end(), [](const auto& tail) {
      const auto entries = tail->Next(absl::ZeroDuration());
      return entries.ok() && entries->empty();
    });
  };
  CreateModel(*journal, "a");
  const int scans = control_->scans;
  EXPECT_TRUE(all_are_at_the_end());
  EXPECT_EQ(control_->scans, scans + 1);
  CreateModel(*journal, "b");
  control_->is_away = true;
  for (const auto& tail : tails)
    EXPECT_TRUE(absl::IsUnavailable(tail->Next(absl::ZeroDuration()).status()));
  control_->is_away = false;
  EXPECT_TRUE(all_are_at_the_end());
}

}  // namespace
}  // namespace perceptrond::table_journal_test
