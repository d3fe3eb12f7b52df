// What every home of the journal must do. A test program includes this and says which homes it has.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using testing::CommitOne;
using testing::CreateModel;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LastRevisions;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::ReadRecords;

constexpr size_t kTailBytes = 1 << 20;

std::string Bytes(const google::protobuf::MessageLite& message) {
  return message.SerializeAsString();
}

struct Home {
  std::string name;
  std::function<std::unique_ptr<Journal>(const std::string& directory)> open;
  // Whether it is one log, which tails read and nothing is dropped from.
  bool is_a_log = false;
  // How many it is filled with.
  int models = 3000;
};

void PrintTo(const Home& home, std::ostream* out) { *out << home.name; }

class JournalConformance : public ::testing::TestWithParam<Home> {
 protected:
  JournalConformance() : journal_(GetParam().open(directory_.path())) {}

  std::vector<uint64_t> Revisions(uint64_t model_id, uint64_t after = 0) {
    const auto records = ReadRecords(*journal_, model_id, after);
    EXPECT_OK(records.status());
    return LastRevisions(records.value());
  }
  std::vector<std::string> Names(absl::string_view after, size_t limit) {
    std::vector<std::string> names;
    const auto headers = journal_->List(after, limit);
    EXPECT_OK(headers.status());
    for (const storage::ModelHeader& header : *headers) names.push_back(header.model().name());
    return names;
  }

  const testing::TempDir directory_;
  const std::unique_ptr<Journal> journal_;
};

TEST_P(JournalConformance, FindsWhatWasCreatedAndNothingElse) {
  const storage::ModelHeader header = CreateModel(*journal_, "a");
  const auto found = journal_->Find("a");
  ASSERT_OK(found.status());
  EXPECT_EQ(Bytes(*found), Bytes(header));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("b").status()));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("").status()));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("aa").status()));
}

TEST_P(JournalConformance, RefusesANameThatExistsAndKeepsTheOldModel) {
  const storage::ModelHeader header = CreateModel(*journal_, "a");
  storage::ModelHeader again;
  again.mutable_model()->set_name("a");
  EXPECT_TRUE(absl::IsAlreadyExists(journal_->Create(again)));
  EXPECT_EQ(Bytes(*journal_->Find("a")), Bytes(header));
}

TEST_P(JournalConformance, NeverUsesAnIdTwice) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(ids.insert(CreateModel(*journal_, "same").id()).second);
    ASSERT_OK(journal_->Delete("same"));
  }
}

TEST_P(JournalConformance, ReplacesAHeaderOfTheSameModelOnly) {
  const storage::ModelHeader first = CreateModel(*journal_, "a");
  storage::ModelHeader header = first;
  header.mutable_model()->set_description("new");
  EXPECT_OK(journal_->Replace(header, first));
  EXPECT_EQ(Bytes(*journal_->Find("a")), Bytes(header));
  storage::ModelHeader absent = header;
  absent.mutable_model()->set_name("b");
  EXPECT_TRUE(absl::IsNotFound(journal_->Replace(absent, header)));
  ASSERT_OK(journal_->Delete("a"));
  const storage::ModelHeader successor = CreateModel(*journal_, "a");
  EXPECT_TRUE(absl::IsNotFound(journal_->Replace(header, header)));
  EXPECT_EQ(Bytes(*journal_->Find("a")), Bytes(successor));
}

TEST_P(JournalConformance, ReplacesNoHeaderThatAnotherHasChangedMeanwhile) {
  const storage::ModelHeader first = CreateModel(*journal_, "a");
  storage::ModelHeader second = first;
  // Maps have no order.
  auto& errors =
      *second.add_kept_snapshots()->mutable_counters()->mutable_report()->mutable_row_errors();
  for (int i = 0; i < 20; ++i) errors[absl::StrCat("REASON_", i)] = 1;
  ASSERT_OK(journal_->Replace(second, first));
  storage::ModelHeader third = first;
  third.mutable_model()->set_description("another");
  EXPECT_TRUE(absl::IsAborted(journal_->Replace(third, first)));
  storage::ModelHeader renamed = third;
  renamed.mutable_model()->set_name("b");
  EXPECT_TRUE(absl::IsAborted(journal_->Rename(renamed, first)));
  EXPECT_EQ(journal_->Find("a")->kept_snapshots_size(), 1);
  EXPECT_OK(journal_->Replace(third, *journal_->Find("a")));
}

TEST_P(JournalConformance, ListsPagesInTheOrderOfNames) {
  for (const char* name : {"m", "b", "zz", "a", "ab"}) CreateModel(*journal_, name);
  EXPECT_THAT(Names("", 100), ElementsAre("a", "ab", "b", "m", "zz"));
  EXPECT_THAT(Names("", 2), ElementsAre("a", "ab"));
  EXPECT_THAT(Names("ab", 2), ElementsAre("b", "m"));
  EXPECT_THAT(Names("c", 1), ElementsAre("m"));  // after a name that is not there
  EXPECT_THAT(Names("zz", 9), IsEmpty());
  EXPECT_THAT(Names("", 0), IsEmpty());
  EXPECT_EQ(journal_->Count().value(), 5U);
}

TEST_P(JournalConformance, DeletingTakesEverythingOfTheModelAndNothingOfOthers) {
  const uint64_t one = CreateModel(*journal_, "one").id();
  const uint64_t other = CreateModel(*journal_, "other").id();
  for (const uint64_t id : {one, other}) {
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(1, 3)})));
    storage::Snapshot snapshot;
    snapshot.set_revision(2);
    ASSERT_OK(journal_->SaveSnapshot(id, snapshot));
  }
  ASSERT_OK(journal_->Delete("one"));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("one").status()));
  EXPECT_TRUE(absl::IsNotFound(journal_->Delete("one")));
  EXPECT_THAT(Revisions(one), IsEmpty());
  EXPECT_EQ(journal_->LoadCounters(one)->report().updates(), 0U);
  EXPECT_THAT(journal_->LoadCommittedState(one)->positions, IsEmpty());
  EXPECT_FALSE(journal_->LoadSnapshot(one)->has_value());
  EXPECT_THAT(Revisions(other), ElementsAre(3));
  EXPECT_EQ(journal_->LoadCommittedState(other)->positions.size(), 1U);
  EXPECT_TRUE(journal_->LoadSnapshot(other)->has_value());
  EXPECT_EQ(journal_->Count().value(), 1U);
}

TEST_P(JournalConformance, AModelThatNeverCommittedStandsAtZero) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  EXPECT_EQ(Bytes(journal_->LoadCommittedState(id)->counters), "");
  EXPECT_THAT(journal_->LoadCommittedState(id)->positions, IsEmpty());
  EXPECT_THAT(Revisions(id), IsEmpty());
  EXPECT_FALSE(journal_->LoadSnapshot(id)->has_value());
}

TEST_P(JournalConformance, ReplaysRecordsWholeAndInOrder) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  // More than 255, so that numbers must sort as numbers and not as text.
  uint64_t revision = 0;
  std::vector<std::string> written;
  for (int i = 0; i < 300; ++i) {
    const storage::UpdateRecord record = MakeRecord(revision + 1, 1 + i % 3);
    written.push_back(Bytes(record));
    revision = LastRevision(record);
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {record}), /*sync=*/false));
  }
  const auto records = ReadRecords(*journal_, id);
  ASSERT_OK(records.status());
  ASSERT_EQ(records->size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) ASSERT_EQ(Bytes((*records)[i]), written[i]) << i;
}

TEST_P(JournalConformance, ReplaysWhatEndsBehindARevision) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  ASSERT_OK(
      CommitOne(*journal_, MakeEntry(id, {MakeRecord(1, 3), MakeRecord(4, 3), MakeRecord(7, 1)})));
  EXPECT_THAT(Revisions(id, 0), ElementsAre(3, 6, 7));
  EXPECT_THAT(Revisions(id, 2), ElementsAre(3, 6, 7));
  EXPECT_THAT(Revisions(id, 3), ElementsAre(6, 7));
  EXPECT_THAT(Revisions(id, 5), ElementsAre(6, 7));
  EXPECT_THAT(Revisions(id, 7), IsEmpty());
}

TEST_P(JournalConformance, ReplayStopsAtTheFirstErrorAndReturnsIt) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(1, 1), MakeRecord(2, 1)})));
  int calls = 0;
  const absl::Status status = journal_->Replay(id, 0, [&](const auto&, size_t) {
    ++calls;
    return absl::CancelledError("enough");
  });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_EQ(calls, 1);
}

TEST_P(JournalConformance, ACommitMovesCountersAndPositionsWithItsRecords) {
  const uint64_t one = CreateModel(*journal_, "one").id();
  // A commit is of one partition.
  uint64_t other = 0;
  for (int i = 0; other == 0 || journal_->PartitionOf(other) != journal_->PartitionOf(one); ++i)
    other = CreateModel(*journal_, "other" + std::to_string(i)).id();
  const JournalEntry entries[] = {MakeEntry(one, {MakeRecord(1, 2)}),
                                  MakeEntry(other, {MakeRecord(1, 5)})};
  ASSERT_OK(journal_->Commit(entries, {}).status());
  EXPECT_EQ(Bytes(*journal_->LoadCounters(one)), Bytes(entries[0].counters));
  EXPECT_EQ(Bytes(journal_->LoadCommittedState(other)->counters), Bytes(entries[1].counters));
  EXPECT_EQ(Bytes(journal_->LoadCommittedState(other)->positions.at(0)),
            Bytes(entries[1].positions[0]));
  EXPECT_THAT(Revisions(one), ElementsAre(2));
  EXPECT_THAT(Revisions(other), ElementsAre(5));
}

TEST_P(JournalConformance, PositionsOfProducersThatDidNotMoveStay) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  const auto move = [&](const std::string& producer, int64_t offset) {
    JournalEntry entry;
    entry.model_id = id;
    entry.positions.emplace_back().set_id(producer);
    entry.positions.back().set_next_offset(offset);
    ASSERT_OK(CommitOne(*journal_, entry));
  };
  const std::string odd("\x7f\0x", 3);
  move("p", 1);
  move("pp", 2);
  move(odd, 3);
  move("p", 4);
  std::map<std::string, int64_t> offsets;
  const CommittedState state = journal_->LoadCommittedState(id).value();
  for (const storage::ProducerPosition& position : state.positions)
    offsets[position.id()] = position.next_offset();
  EXPECT_EQ(offsets, (std::map<std::string, int64_t>{{"p", 4}, {"pp", 2}, {odd, 3}}));
}

storage::Snapshot MakeSnapshot(uint64_t revision, size_t floats) {
  storage::Snapshot snapshot;
  snapshot.set_revision(revision);
  storage::StateArray& array = *snapshot.add_arrays();
  array.set_size(floats);
  for (size_t i = 0; i < floats; ++i) array.add_values(static_cast<float>(i % 977) + revision);
  return snapshot;
}

TEST_P(JournalConformance, ASnapshotDropsWhatItCoversAndOnlyThat) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint64_t other = CreateModel(*journal_, "other").id();
  for (const uint64_t model : {id, other}) {
    ASSERT_OK(CommitOne(*journal_,
                        MakeEntry(model, {MakeRecord(1, 3), MakeRecord(4, 3), MakeRecord(7, 1)})));
  }
  const storage::Snapshot snapshot = MakeSnapshot(4, 10);
  ASSERT_OK(journal_->SaveSnapshot(id, snapshot));
  EXPECT_EQ(Bytes(**journal_->LoadSnapshot(id)), Bytes(snapshot));
  EXPECT_THAT(Revisions(id), ElementsAre(6, 7));  // that of 4 to 6 is covered in part only
  EXPECT_THAT(Revisions(other), ElementsAre(3, 6, 7));
  EXPECT_EQ(journal_->LoadCounters(id)->report().updates(), 7U);
  EXPECT_FALSE(journal_->LoadSnapshot(other)->has_value());
}

TEST_P(JournalConformance, TheLatestSnapshotReplacesTheOneBeforeWhateverTheirSizes) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  uint64_t revision = 0;
  // Up to 4 MB: several pieces where a home keeps snapshots in pieces.
  for (const size_t floats : {10U, 1'000'000U, 300'000U, 700'000U, 0U, 262'144U}) {
    revision += 5;
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(revision - 4, 5)})));
    const storage::Snapshot snapshot = MakeSnapshot(revision, floats);
    ASSERT_OK(journal_->SaveSnapshot(id, snapshot));
    const auto loaded = journal_->LoadSnapshot(id);
    ASSERT_OK(loaded.status());
    EXPECT_TRUE(Bytes(**loaded) == Bytes(snapshot)) << floats;
    EXPECT_THAT(Revisions(id), IsEmpty());
  }
}

TEST_P(JournalConformance, DropAfterRemovesWhatEndsBehindTheRevision) {
  // In a log a failed commit leaves nothing that is read.
  if (GetParam().is_a_log) return;
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint64_t next = CreateModel(*journal_, "next").id();
  for (const uint64_t model : {id, next})
    ASSERT_OK(CommitOne(*journal_, MakeEntry(model, {MakeRecord(1, 3), MakeRecord(4, 3)})));
  ASSERT_OK(journal_->DropAfter(id, 6));
  EXPECT_THAT(Revisions(id), ElementsAre(3, 6));
  ASSERT_OK(journal_->DropAfter(id, 3));
  EXPECT_THAT(Revisions(id), ElementsAre(3));
  EXPECT_THAT(Revisions(next), ElementsAre(3, 6));
  ASSERT_OK(journal_->DropAfter(id, 0));
  EXPECT_THAT(Revisions(id), IsEmpty());
}

TEST_P(JournalConformance, ACommitThatExpectsTheLastSequenceIsWritten) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  uint64_t last = journal_->LastSequence(journal_->PartitionOf(id)).value();
  for (uint64_t revision = 1; revision <= 3; ++revision) {
    const JournalEntry entry = MakeEntry(id, {MakeRecord(revision, 1)});
    const auto outcome = journal_->Commit({&entry, 1}, {.expected = last});
    ASSERT_OK(outcome.status());
    EXPECT_FALSE(outcome->stale);
    EXPECT_GT(outcome->sequence, last);
    last = outcome->sequence;
    EXPECT_EQ(journal_->LastSequence(journal_->PartitionOf(id)).value(), last);
  }
  EXPECT_THAT(Revisions(id), ElementsAre(1, 2, 3));
}

TEST_P(JournalConformance, AModelsEpochsAreKeptInOrderAsLongAsItIsThere) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint64_t other = CreateModel(*journal_, "other").id();
  EXPECT_THAT(journal_->LoadCommittedState(id)->epochs, IsEmpty());
  const std::vector<EpochBegin> epochs = {{5, 0}, {256, 3}, {1 << 20, 4}};
  // As a copy has them, and its writers later.
  JournalEntry entry = MakeEntry(id, {MakeRecord(1, 4)});
  entry.epochs = {epochs[1], epochs[0]};
  ASSERT_OK(CommitOne(*journal_, entry));
  entry = MakeEntry(id, {MakeRecord(5, 1)});
  entry.epochs = {epochs[2]};
  ASSERT_OK(CommitOne(*journal_, entry));
  ASSERT_OK(CommitOne(*journal_, MakeEntry(other, {MakeRecord(1, 1)})));
  ASSERT_OK(journal_->SaveSnapshot(id, testing::MakeState(5, 1)));
  EXPECT_EQ(journal_->LoadCommittedState(id)->epochs, epochs);
  EXPECT_EQ(journal_->Load(id).value()->committed().epochs, epochs);
  EXPECT_THAT(journal_->LoadCommittedState(other)->epochs, IsEmpty());
  ASSERT_OK(journal_->Delete("a"));
  EXPECT_THAT(journal_->LoadCommittedState(id)->epochs, IsEmpty());
}

TEST_P(JournalConformance, AStaleCommitChangesNothingAndSaysSo) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint64_t before = journal_->LastSequence(journal_->PartitionOf(id)).value();
  ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(1, 2)})));
  const uint64_t last = journal_->LastSequence(journal_->PartitionOf(id)).value();
  const JournalEntry late = MakeEntry(id, {MakeRecord(3, 5)});
  for (const uint64_t expected : {before, last + 1, uint64_t{0}}) {
    const auto outcome = journal_->Commit({&late, 1}, {.expected = expected});
    ASSERT_OK(outcome.status());
    EXPECT_TRUE(outcome->stale) << expected;
  }
  EXPECT_THAT(Revisions(id), ElementsAre(2));
  EXPECT_EQ(journal_->LoadCounters(id)->report().updates(), 2U);
  EXPECT_EQ(journal_->LastSequence(journal_->PartitionOf(id)).value(), last);
}

TEST_P(JournalConformance, OfEqualCommitsAtOnceOneIsWritten) {
  constexpr int kThreads = 8;
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint32_t partition = journal_->PartitionOf(id);
  for (uint64_t round = 1; round <= 50; ++round) {
    const uint64_t expected = journal_->LastSequence(partition).value();
    std::atomic<int> written = 0;
    std::atomic<int> stale = 0;
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const JournalEntry entry = MakeEntry(id, {MakeRecord(round, 1)});
        start.arrive_and_wait();
        const auto outcome = journal_->Commit({&entry, 1}, {.sync = false, .expected = expected});
        if (outcome.ok()) ++(outcome->stale ? stale : written);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(written, 1) << round;
    ASSERT_EQ(stale, kThreads - 1) << round;
    ASSERT_EQ(Revisions(id).size(), round);
  }
}

TEST_P(JournalConformance, HoldsThousandsOfModels) {
  // Of a fleet few: each takes a round trip, and more than a byte counts are enough.
  const int kModels = GetParam().is_a_log ? 300 : GetParam().models;
  for (int i = 0; i < kModels; ++i) {
    const uint64_t id = CreateModel(*journal_, absl::StrCat("model-", i)).id();
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(1, 1 + i % 5)}), /*sync=*/false));
  }
  ASSERT_EQ(journal_->Count().value(), static_cast<uint64_t>(kModels));
  std::set<std::string> names;
  std::string after;
  while (true) {
    const std::vector<std::string> page = Names(after, 171);
    if (page.empty()) break;
    EXPECT_LT(after, page.front());
    names.insert(page.begin(), page.end());
    after = page.back();
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kModels));
  // Ids that differ in their last byte only must not reach into each other.
  for (int i = 0; i < kModels; i += 2) ASSERT_OK(journal_->Delete(absl::StrCat("model-", i)));
  for (int i = 1; i < kModels; i += 2) {
    const auto header = journal_->Find(absl::StrCat("model-", i));
    ASSERT_OK(header.status());
    ASSERT_THAT(Revisions(header->id()), ElementsAre(1 + i % 5));
    ASSERT_EQ(journal_->LoadCommittedState(header->id())->positions.size(), 1U);
  }
  EXPECT_EQ(journal_->Count().value(), static_cast<uint64_t>(kModels / 2));
}

}  // namespace
}  // namespace perceptrond
