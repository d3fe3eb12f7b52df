// Every home of the journal keeps aliases, other names and snapshots of models.
#pragma once

#include "tests/core/journal/journal_conformance.h"

namespace perceptrond {
namespace {

using testing::MakeAlias;
using testing::MakeState;

TEST_P(JournalConformance, AnAliasIsWrittenOnlyOverTheOneThatItsWriterKnows) {
  CreateModel(*journal_, "a");
  CreateModel(*journal_, "b");
  const Alias first = MakeAlias("aliases/a.b", "a", "1");
  const Alias second = MakeAlias("aliases/a.b", "b", "2");
  EXPECT_TRUE(journal_->aliases().empty());
  EXPECT_TRUE(absl::IsAborted(journal_->PutAlias(first, "0")));
  ASSERT_OK(journal_->PutAlias(first, ""));
  EXPECT_EQ(Bytes(journal_->aliases().Find("aliases/a.b").value()), Bytes(first));
  EXPECT_TRUE(absl::IsAborted(journal_->PutAlias(MakeAlias("aliases/a.b", "b", "3"), "")));
  ASSERT_OK(journal_->PutAlias(second, "1"));
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/a.b").value(), "b");
  EXPECT_TRUE(absl::IsAborted(journal_->DeleteAlias("aliases/a.b", "1")));
  ASSERT_OK(journal_->DeleteAlias("aliases/a.b", "2"));
  EXPECT_FALSE(journal_->aliases().Find("aliases/a.b").has_value());
  EXPECT_TRUE(absl::IsAborted(journal_->DeleteAlias("aliases/a.b", "2")));
}

TEST_P(JournalConformance, AnAliasNamesAModelThatIsThere) {
  CreateModel(*journal_, "a");
  EXPECT_TRUE(absl::IsNotFound(journal_->PutAlias(MakeAlias("aliases/x", "b", "1"), "")));
  EXPECT_TRUE(journal_->aliases().empty());
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/x", "a", "1"), ""));
  EXPECT_TRUE(absl::IsFailedPrecondition(journal_->Delete("a")));
  EXPECT_OK(journal_->Find("a").status());
  ASSERT_OK(journal_->DeleteAlias("aliases/x", "1"));
  EXPECT_OK(journal_->Delete("a"));
}

TEST_P(JournalConformance, AliasesThatDifferInADotAreTwo) {
  CreateModel(*journal_, "x");
  CreateModel(*journal_, "y");
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/a.b", "x", "1"), ""));
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/ab", "y", "1"), ""));
  ASSERT_OK(journal_->DeleteAlias("aliases/ab", "1"));
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/a.b").value(), "x");
}

TEST_P(JournalConformance, ARenamedModelIsTheSameOneAndItsAliasesFollow) {
  storage::ModelHeader header = CreateModel(*journal_, "a");
  CreateModel(*journal_, "other");
  const storage::ModelHeader before = header;
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/x", "a", "1"), ""));
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/y", "other", "1"), ""));
  header.mutable_model()->set_name("other");
  EXPECT_TRUE(absl::IsAlreadyExists(journal_->Rename(header, before)));
  header.mutable_model()->set_name("b");
  storage::ModelHeader absent = before;
  absent.mutable_model()->set_name("c");
  EXPECT_TRUE(absl::IsNotFound(journal_->Rename(header, absent)));
  ASSERT_OK(journal_->Rename(header, before));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("a").status()));
  EXPECT_EQ(Bytes(journal_->Find("b").value()), Bytes(header));
  EXPECT_EQ(journal_->Count().value(), 2U);
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/x").value(), "b");
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/y").value(), "other");
}

TEST_P(JournalConformance, KeptSnapshotsStayWhileTheModelsOwnIsReplaced) {
  storage::ModelHeader header = CreateModel(*journal_, "a");
  std::vector<storage::KeptSnapshot> kept(3);
  for (uint64_t number = 1; number <= 2; ++number) {
    kept[number].set_number(number);
    ASSERT_OK(journal_->SaveKept(header.id(), MakeState(number, static_cast<float>(number)),
                                 kept[number]));
    const storage::ModelHeader before = header;
    *header.add_kept_snapshots() = kept[number];
    ASSERT_OK(journal_->Replace(header, before));
  }
  const storage::ModelHeader before = header;
  header.mutable_kept_snapshots()->RemoveLast();
  ASSERT_OK(journal_->Replace(header, before));
  EXPECT_EQ(Bytes(journal_->LoadKept(header.id(), kept[1]).value()), Bytes(MakeState(1, 1)));
  EXPECT_TRUE(absl::IsDataLoss(journal_->LoadKept(header.id(), kept[2]).status()));
}

TEST_P(JournalConformance, ASnapshotWithAHistoryDropsOnlyWhatComesBeforeThat) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  EXPECT_EQ(journal_->LoadHistory(id)->begin(), 0U);
  for (const uint64_t first : {1U, 4U, 7U, 10U})
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(first, 3)})));
  storage::Snapshot snapshot = MakeSnapshot(6, 10);
  storage::History& history = *snapshot.mutable_history();
  history.set_revision(6);
  history.set_begin(3);
  history.add_segments()->set_revision(6);
  ASSERT_OK(journal_->SaveSnapshot(id, snapshot));
  EXPECT_THAT(Revisions(id), ElementsAre(6, 9, 12));
  EXPECT_EQ(journal_->LoadHistory(id)->begin(), 3U);
  // A load replays what the snapshot lacks alone.
  const auto stored = journal_->Load(id);
  ASSERT_OK(stored.status());
  EXPECT_EQ((*stored)->TakeSnapshot().value()->revision(), 6U);
  std::vector<uint64_t> replayed;
  ASSERT_OK((*stored)->Replay(6, [&](const storage::UpdateRecord& record, size_t /*bytes*/) {
    replayed.push_back(LastRevision(record));
    return absl::OkStatus();
  }));
  EXPECT_THAT(replayed, ElementsAre(9, 12));
  // It goes on where the one before ended.
  storage::History next = *journal_->LoadHistory(id);
  snapshot = MakeSnapshot(9, 10);
  next.set_revision(9);
  next.set_begin(6);
  next.mutable_segments(0)->set_revision(9);
  *snapshot.mutable_history() = next;
  ASSERT_OK(journal_->SaveSnapshot(id, snapshot));
  EXPECT_THAT(Revisions(id), ElementsAre(9, 12));
  EXPECT_EQ(journal_->LoadHistory(id)->segments(0).revision(), 9U);
  ASSERT_OK(journal_->SaveSnapshot(id, MakeSnapshot(12, 10)));
  EXPECT_THAT(Revisions(id), IsEmpty());
  EXPECT_EQ(journal_->LoadHistory(id)->begin(), 12U);
}

TEST_P(JournalConformance, AModelThatIsCreatedWithAStateIsWholeAndGoesOn) {
  const uint64_t other = CreateModel(*journal_, "other").id();
  ASSERT_OK(CommitOne(*journal_, MakeEntry(other, {MakeRecord(1, 3)})));
  const storage::Snapshot snapshot = MakeSnapshot(7, 300'000);
  CommittedState committed;
  committed.counters.mutable_report()->set_updates(7);
  committed.positions.emplace_back().set_id("p");
  committed.positions.back().set_next_offset(90);
  const auto create = [&](const std::string& name) {
    storage::ModelHeader header;
    header.mutable_model()->set_name(name);
    EXPECT_OK(journal_->CreateWith(header, snapshot, committed));
    return header;
  };
  const storage::ModelHeader header = create("a");
  EXPECT_NE(header.id(), other);
  EXPECT_EQ(Bytes(*journal_->Find("a")), Bytes(header));
  EXPECT_TRUE(Bytes(**journal_->LoadSnapshot(header.id())) == Bytes(snapshot));
  EXPECT_EQ(journal_->LoadCounters(header.id())->report().updates(), 7U);
  EXPECT_EQ(journal_->LoadCommittedState(header.id())->positions.at(0).next_offset(), 90);
  EXPECT_THAT(Revisions(header.id()), IsEmpty());
  // A name that exists: what was written before that was noticed is of no model.
  storage::ModelHeader again;
  again.mutable_model()->set_name("a");
  EXPECT_TRUE(absl::IsAlreadyExists(journal_->CreateWith(again, snapshot, committed)));
  EXPECT_EQ(Bytes(*journal_->Find("a")), Bytes(header));
  EXPECT_EQ(*journal_->Count(), 2U);
  EXPECT_NE(create("b").id(), header.id());
  ASSERT_OK(CommitOne(*journal_, MakeEntry(header.id(), {MakeRecord(8, 2)})));
  EXPECT_THAT(Revisions(header.id()), ElementsAre(9));
  EXPECT_THAT(Revisions(other), ElementsAre(3));
}

}  // namespace
}  // namespace perceptrond
