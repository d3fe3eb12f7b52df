// What a journal with several openers must do: only the opener that took a partition over writes it.
// A test program includes this and says which homes it has.
#pragma once

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/journal/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"

namespace perceptrond {
namespace {

using testing::CommitOne;
using testing::CreateModel;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LastRevisions;
using testing::MakeAlias;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::MakeState;
using testing::ReadRecords;

struct SharedHome {
  std::string name;
  // Opens one journal this many times.
  std::function<std::vector<std::unique_ptr<Journal>>(int openers)> open;
};

void PrintTo(const SharedHome& home, std::ostream* out) { *out << home.name; }

class Openers : public ::testing::TestWithParam<SharedHome> {
 protected:
  static constexpr int kOpeners = 8;

  Openers() : journals_(GetParam().open(kOpeners)), id_(CreateModel(one(), "a").id()) {}

  Journal& one() { return *journals_[0]; }
  Journal& two() { return *journals_[1]; }
  uint32_t partition() { return one().PartitionOf(id_); }
  uint64_t Last() { return one().LastSequence(partition()).value(); }
  CommitOutcome TakeOver(Journal& journal, const std::string& address) {
    const auto outcome = journal.TakeOver(partition(), address, Last());
    EXPECT_OK(outcome.status());
    EXPECT_FALSE(outcome->stale);
    return *outcome;
  }
  CommitOutcome Commit(Journal& journal, uint64_t revision) {
    const JournalEntry entry = MakeEntry(id_, {MakeRecord(revision, 1)});
    const auto outcome = journal.Commit({&entry, 1}, {});
    EXPECT_OK(outcome.status());
    return *outcome;
  }
  std::vector<uint64_t> Revisions(Journal& journal) {
    return LastRevisions(ReadRecords(journal, id_).value());
  }

  const std::vector<std::unique_ptr<Journal>> journals_;
  const uint64_t id_;
};

TEST_P(Openers, WhatOneWritesTheOthersRead) {
  TakeOver(one(), "one");
  EXPECT_FALSE(Commit(one(), 1).stale);
  EXPECT_FALSE(Commit(one(), 2).stale);
  for (const std::unique_ptr<Journal>& journal : journals_) {
    EXPECT_EQ(journal->Find("a")->id(), id_);
    EXPECT_THAT(Revisions(*journal), ElementsAre(1, 2));
    EXPECT_EQ(journal->LoadCounters(id_)->report().updates(), 2U);
  }
}

TEST_P(Openers, AWriterThatWasSupersededWritesNothing) {
  TakeOver(one(), "one");
  EXPECT_FALSE(Commit(one(), 1).stale);
  TakeOver(two(), "two");
  EXPECT_TRUE(Commit(one(), 2).stale);
  EXPECT_FALSE(Commit(two(), 2).stale);
  EXPECT_TRUE(Commit(one(), 3).stale);
  EXPECT_FALSE(Commit(two(), 3).stale);
  EXPECT_THAT(Revisions(one()), ElementsAre(1, 2, 3));
  TakeOver(one(), "one");
  EXPECT_FALSE(Commit(one(), 4).stale);
  EXPECT_TRUE(Commit(two(), 4).stale);
  EXPECT_THAT(Revisions(two()), ElementsAre(1, 2, 3, 4));
}

TEST_P(Openers, OneThatIsStillTheWriterCanConfirmIt) {
  TakeOver(one(), "one");
  EXPECT_TRUE(one().ConfirmWriter(partition()).value());
  EXPECT_FALSE(two().ConfirmWriter(partition()).value());
  EXPECT_FALSE(Commit(one(), 1).stale);
  EXPECT_TRUE(one().ConfirmWriter(partition()).value());
  TakeOver(two(), "two");
  EXPECT_FALSE(one().ConfirmWriter(partition()).value());
  EXPECT_TRUE(two().ConfirmWriter(partition()).value());
}

TEST_P(Openers, AnOpenerThatNeverTookOverWritesNothing) {
  TakeOver(one(), "one");
  EXPECT_TRUE(Commit(two(), 1).stale);
  EXPECT_THAT(Revisions(one()), IsEmpty());
}

TEST_P(Openers, ASupersededWritersEntriesAreNotInTheLog) {
  TakeOver(one(), "one");
  EXPECT_FALSE(Commit(one(), 1).stale);
  const uint64_t after = Last();
  const auto tail = one().Tail(partition(), after);
  ASSERT_OK(tail.status());
  TakeOver(two(), "two");
  std::vector<JournalEntry> late;
  for (uint64_t revision = 2; revision <= 6; ++revision)
    late.push_back(MakeEntry(id_, {MakeRecord(revision, 1)}));
  const auto outcome = one().Commit(late, {});
  ASSERT_OK(outcome.status());
  EXPECT_TRUE(outcome->stale);
  EXPECT_EQ(outcome->written, 0U);
  EXPECT_THAT(Revisions(two()), ElementsAre(1));
  EXPECT_FALSE(Commit(two(), 2).stale);
  EXPECT_THAT(Revisions(one()), ElementsAre(1, 2));
  std::vector<uint64_t> revisions;
  while (revisions.empty()) {
    const auto entries = (*tail)->Next(absl::Hours(1));
    ASSERT_OK(entries.status());
    for (const SequencedEntry& one : *entries) {
      if (!one.take_over.has_value()) revisions.push_back(LastRevision(one.entry.records.at(0)));
    }
  }
  EXPECT_THAT(revisions, ElementsAre(2));
  EXPECT_EQ((*tail)->pending(), 0U);
}

TEST_P(Openers, OfTakeOversAtOnceOneSucceeds) {
  for (int round = 0; round < 20; ++round) {
    const uint64_t expected = Last();
    std::atomic<int> taken = 0;
    std::atomic<int> stale = 0;
    std::barrier start(kOpeners);
    std::vector<std::thread> threads;
    for (const std::unique_ptr<Journal>& journal : journals_) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const auto outcome = journal->TakeOver(partition(), "someone", expected);
        EXPECT_OK(outcome.status());
        if (outcome.ok()) ++(outcome->stale ? stale : taken);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(taken, 1) << round;
    ASSERT_EQ(stale, kOpeners - 1) << round;
  }
}

// Nobody has taken the partition over, so that an entry of any opener counts.
TEST_P(Openers, OfEqualCommitsAtOnceOneIsWritten) {
  for (uint64_t round = 1; round <= 20; ++round) {
    const uint64_t expected = Last();
    std::atomic<int> written = 0;
    std::atomic<int> stale = 0;
    std::atomic<int> winner = -1;
    std::barrier start(kOpeners);
    std::vector<std::thread> threads;
    for (int i = 0; i < kOpeners; ++i) {
      threads.emplace_back([&, i] {
        JournalEntry entry = MakeEntry(id_, {MakeRecord(round, 1)});
        entry.positions.front().set_next_offset(i);
        start.arrive_and_wait();
        const auto outcome = journals_[i]->Commit({&entry, 1}, {.expected = expected});
        EXPECT_OK(outcome.status());
        if (!outcome.ok()) return;
        ++(outcome->stale ? stale : written);
        if (!outcome->stale) winner = i;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(written, 1) << round;
    ASSERT_EQ(stale, kOpeners - 1) << round;
    ASSERT_EQ(Last(), expected + 1);
    const auto state = one().LoadCommittedState(id_);
    ASSERT_OK(state.status());
    ASSERT_EQ(state->counters.report().updates(), round);
    ASSERT_EQ(state->positions.at(0).next_offset(), winner);
  }
}

TEST_P(Openers, ATailSaysWhoWritesFromWhenOn) {
  const uint64_t before = Last();
  const CommitOutcome first = TakeOver(one(), "one:1");
  Commit(one(), 1);
  const CommitOutcome second = TakeOver(two(), "two:2");
  EXPECT_GT(second.epoch, first.epoch);
  Commit(two(), 2);
  const auto tail = one().Tail(partition(), before);
  ASSERT_OK(tail.status());
  std::vector<SequencedEntry> all;
  while (all.size() < 4) {
    auto entries = (*tail)->Next(absl::Hours(1));
    ASSERT_OK(entries.status());
    std::move(entries->begin(), entries->end(), std::back_inserter(all));
  }
  ASSERT_EQ(all.size(), 4U);
  ASSERT_TRUE(all[0].take_over.has_value());
  EXPECT_EQ(all[0].take_over->address(), "one:1");
  EXPECT_EQ(all[0].sequence, first.sequence);
  EXPECT_EQ(all[1].epoch, first.epoch);
  ASSERT_TRUE(all[2].take_over.has_value());
  EXPECT_EQ(all[2].take_over->address(), "two:2");
  EXPECT_EQ(all[3].epoch, second.epoch);
  EXPECT_EQ(LastRevision(all[3].entry.records.at(0)), 2U);
}

TEST_P(Openers, OfModelsCreatedAtOnceUnderOneNameOneExists) {
  std::atomic<int> created = 0;
  std::barrier start(kOpeners);
  std::vector<std::thread> threads;
  for (int i = 0; i < kOpeners; ++i) {
    threads.emplace_back([&, i] {
      storage::ModelHeader header;
      header.mutable_model()->set_name("wanted");
      header.mutable_model()->set_uid(std::to_string(i));
      start.arrive_and_wait();
      const absl::Status status = journals_[i]->Create(header);
      EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
      if (status.ok()) ++created;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  const std::string uid = one().Find("wanted")->model().uid();
  for (const std::unique_ptr<Journal>& journal : journals_)
    EXPECT_EQ(journal->Find("wanted")->model().uid(), uid);
}

// By the snapshots' bytes.
void ExpectKept(Journal& journal, uint64_t id, const storage::KeptSnapshot& kept, float weight) {
  const auto loaded = journal.LoadKept(id, kept);
  ASSERT_OK(loaded.status());
  EXPECT_EQ(loaded->SerializeAsString(), MakeState(1, weight).SerializeAsString());
}

TEST_P(Openers, ASupersededWriterKeepsNoSnapshotAndLeavesThatOfTheNextOne) {
  storage::KeptSnapshot late;
  late.set_number(1);
  storage::KeptSnapshot next = late;
  TakeOver(one(), "one");
  TakeOver(two(), "two");
  ASSERT_OK(two().SaveKept(id_, MakeState(1, 2), next));
  EXPECT_TRUE(absl::IsUnavailable(one().SaveKept(id_, MakeState(1, 1), late)));
  ExpectKept(two(), id_, next, 2);
}

TEST_P(Openers, AWriterKeepsASnapshotAgainUnderTheNumberOfAnUnfinishedOne) {
  storage::KeptSnapshot kept;
  kept.set_number(1);
  TakeOver(one(), "one");
  ASSERT_OK(one().SaveKept(id_, MakeState(1, 1), kept));
  ASSERT_OK(one().SaveKept(id_, MakeState(1, 2), kept));
  ExpectKept(two(), id_, kept, 2);
}

TEST_P(Openers, WhoIsNotTheWriterKeepsNoSnapshot) {
  TakeOver(one(), "one");
  storage::KeptSnapshot kept;
  kept.set_number(1);
  EXPECT_TRUE(absl::IsUnavailable(two().SaveKept(id_, MakeState(1, 1), kept)));
}

TEST_P(Openers, OfChangesOfOneHeaderAtOnceOneIsMade) {
  for (int round = 0; round < 20; ++round) {
    const storage::ModelHeader before = *one().Find("a");
    std::atomic<int> changed = 0;
    std::atomic<int> refused = 0;
    std::atomic<int> winner = -1;
    std::barrier start(kOpeners);
    std::vector<std::thread> threads;
    for (int i = 0; i < kOpeners; ++i) {
      threads.emplace_back([&, i] {
        storage::ModelHeader header = before;
        header.mutable_model()->set_description(std::to_string(kOpeners * round + i));
        start.arrive_and_wait();
        const absl::Status status = journals_[i]->Replace(header, before);
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        ++(status.ok() ? changed : refused);
        if (status.ok()) winner = kOpeners * round + i;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(changed, 1) << round;
    ASSERT_EQ(refused, kOpeners - 1) << round;
    ASSERT_OK(one().Refresh());
    ASSERT_EQ(one().Find("a")->model().description(), std::to_string(winner));
  }
}

TEST_P(Openers, AModelThatIsDeletedWhileItGetsAnAliasIsThereOrHasNone) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = "models/" + std::to_string(round);
    const Alias alias = MakeAlias("aliases/" + std::to_string(round), name, "1");
    CreateModel(one(), name);
    std::barrier start(2);
    absl::Status put;
    std::thread other([&] {
      start.arrive_and_wait();
      put = two().PutAlias(alias, "");
    });
    start.arrive_and_wait();
    const absl::Status deleted = one().Delete(name);
    other.join();
    ASSERT_NE(put.ok(), deleted.ok()) << put << " " << deleted;
    EXPECT_TRUE(put.ok() || absl::IsNotFound(put)) << put;
    EXPECT_TRUE(deleted.ok() || absl::IsFailedPrecondition(deleted)) << deleted;
    EXPECT_EQ(one().Find(name).ok(), put.ok());
    EXPECT_EQ(one().aliases().Find(alias.name()).has_value(), put.ok());
  }
}

}  // namespace
}  // namespace perceptrond
