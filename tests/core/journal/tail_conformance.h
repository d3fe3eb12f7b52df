// What the tails of every journal that servers share must do. A test program includes this and says which homes it has.
#pragma once

#include <thread>
#include <vector>

#include "tests/core/journal/journal_conformance.h"

namespace perceptrond {
namespace {

class TailConformance : public JournalConformance {};

TEST_P(TailConformance, ATailHasTheEntriesOfItsPartitionInOrderAndThoseToCome) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint32_t partition = journal_->PartitionOf(id);
  const auto commit = [&](uint64_t revision) {
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(revision, 1)}), /*sync=*/false));
  };
  commit(1);
  const uint64_t after = journal_->LastSequence(partition).value();
  commit(2);
  commit(3);
  auto tail = journal_->Tail(partition, after);
  ASSERT_OK(tail.status());
  std::vector<uint64_t> revisions;
  uint64_t sequence = after;
  const auto read = [&](size_t wanted) {
    while (revisions.size() < wanted) {
      const auto entries = (*tail)->Next(absl::Hours(1));
      ASSERT_OK(entries.status());
      for (const SequencedEntry& one : *entries) {
        EXPECT_EQ(one.entry.model_id, id);
        EXPECT_GT(one.sequence, sequence);
        sequence = one.sequence;
        revisions.push_back(LastRevision(one.entry.records.at(0)));
      }
    }
  };
  read(2);
  std::thread later([&] {
    for (uint64_t revision = 4; revision <= 100; ++revision) commit(revision);
  });
  read(99);
  later.join();
  for (size_t i = 0; i < revisions.size(); ++i) ASSERT_EQ(revisions[i], i + 2);
  EXPECT_EQ(sequence, journal_->LastSequence(partition).value());
  EXPECT_THAT((*tail)->Next(absl::ZeroDuration()).value(), IsEmpty());
}

TEST_P(TailConformance, ATailHasAnEntryAsItWasCommitted) {
  const uint64_t id = CreateModel(*journal_, "a").id();
  auto tail = journal_->Tail(journal_->PartitionOf(id),
                             journal_->LastSequence(journal_->PartitionOf(id)).value());
  ASSERT_OK(tail.status());
  const JournalEntry entry = MakeEntry(id, {MakeRecord(1, 3), MakeRecord(4, 1)});
  ASSERT_OK(CommitOne(*journal_, entry));
  const auto entries = (*tail)->Next(absl::Hours(1));
  ASSERT_OK(entries.status());
  ASSERT_EQ(entries->size(), 1U);
  const JournalEntry& found = entries->front().entry;
  EXPECT_EQ(Bytes(found.counters), Bytes(entry.counters));
  ASSERT_EQ(found.records.size(), 2U);
  EXPECT_EQ(Bytes(found.records[0]), Bytes(entry.records[0]));
  EXPECT_EQ(Bytes(found.records[1]), Bytes(entry.records[1]));
  ASSERT_EQ(found.positions.size(), 1U);
  EXPECT_EQ(Bytes(found.positions[0]), Bytes(entry.positions[0]));
}

TEST_P(TailConformance, ATailThatIsTooFarBehindSaysSo) {
  // A log is its own tail, from any entry on.
  if (GetParam().is_a_log) return;
  const uint64_t id = CreateModel(*journal_, "a").id();
  const uint32_t partition = journal_->PartitionOf(id);
  const uint64_t after = journal_->LastSequence(partition).value();
  // Several times what is held: each has some 40 kB.
  for (uint64_t revision = 1; revision <= kTailBytes / 5000; ++revision)
    ASSERT_OK(CommitOne(*journal_, MakeEntry(id, {MakeRecord(revision * 1000, 1000)}), false));
  auto tail = journal_->Tail(partition, after);
  ASSERT_OK(tail.status());
  EXPECT_TRUE(absl::IsOutOfRange((*tail)->Next(absl::ZeroDuration()).status()));
  auto at_the_end = journal_->Tail(partition, journal_->LastSequence(partition).value());
  ASSERT_OK(at_the_end.status());
  EXPECT_THAT((*at_the_end)->Next(absl::ZeroDuration()).value(), IsEmpty());
}

}  // namespace
}  // namespace perceptrond
