// Segments and the ledger's counters, positions and updates.
#include "core/ledger/ledger.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/support/caller.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

Tally RightRows(uint64_t rows) {
  Tally tally;
  tally.examples = rows;
  tally.min_score = 1;
  return tally;
}

UpdateRow MakeUpdate(uint64_t revision, float value) {
  UpdateRow update;
  update.revision = revision;
  update.tally.examples = 1;
  update.tally.mistakes = 1;
  update.tally.updates = 1;
  auto row = std::make_shared<StoredRow>();
  row->dense = true;
  row->values = {value};
  row->label = 1;
  update.row = row;
  update.squared_norm = value;
  return update;
}

class LedgerTest : public ::testing::Test {
 protected:
  Ledger ledger_{CommittedState(), StoredExamplesSettings(), TheoremContext(), 10};
  const std::shared_ptr<Producer> producer_ = ledger_.FindProducer("p").value();
  const Dictionary names_{};
};

// Three right rows at revision 0, an update, two right rows at revision 1, another update.
Segment TwoUpdates() {
  Segment segment;
  segment.producer = "p";
  segment.rows = 7;
  segment.unchanged.push_back({0, RightRows(3)});
  segment.unchanged.push_back({1, RightRows(2)});
  segment.updates.push_back(MakeUpdate(1, 1));
  segment.updates.push_back(MakeUpdate(2, 2));
  return segment;
}

TEST_F(LedgerTest, ASegmentMovesCountersPositionAndUpdatesTogether) {
  EXPECT_EQ(ledger_.Apply(*producer_, TwoUpdates(), names_).next_offset, 7);
  const JournalEntry entry = ledger_.TakePending();
  EXPECT_EQ(entry.counters.report().examples(), 7U);
  EXPECT_EQ(entry.counters.report().mistakes(), 2U);
  ASSERT_EQ(entry.positions.size(), 1U);
  EXPECT_EQ(entry.positions[0].next_offset(), 7);
  ASSERT_EQ(entry.records.size(), 1U);
  EXPECT_EQ(entry.records[0].first_revision(), 1U);
  EXPECT_EQ(entry.records[0].values_size(), 2);
  EXPECT_EQ(entry.records[0].squared_norm(), 2);
  EXPECT_TRUE(ledger_.TakePending().records.empty());
}

TEST_F(LedgerTest, LearnedPredictionsGoWithTheCountersOfTheirRows) {
  Segment segment = TwoUpdates();
  segment.updates.clear();
  segment.predictions = {7, 9};
  ledger_.Apply(*producer_, segment, names_);
  EXPECT_TRUE(ledger_.must_be_written());
  EXPECT_EQ(ledger_.TakePending().learned_predictions, (std::vector<uint64_t>{7, 9}));
  EXPECT_FALSE(ledger_.must_be_written());
  EXPECT_TRUE(ledger_.TakePending().learned_predictions.empty());
}

// Learning releases the state's lock then: a reader that takes it must find the segment.
TEST_F(LedgerTest, AReaderAfterTheLedgerIsLockedFindsTheSegment) {
  std::thread reader;
  uint64_t examples = 0;
  ledger_.Apply(*producer_, TwoUpdates(), names_, [&] {
    reader = std::thread([&] { examples = ledger_.MakeReport({}).examples(); });
  });
  reader.join();
  EXPECT_EQ(examples, 7U);
}

TEST_F(LedgerTest, RightRowsCountBeforeTheUpdateThatReplacedTheirRevision) {
  ledger_.Apply(*producer_, TwoUpdates(), names_);
  Segment more;
  more.producer = "p";
  more.first_offset = 7;
  more.rows = 4;
  more.unchanged.push_back({2, RightRows(4)});
  ledger_.Apply(*producer_, more, names_);
  const ConvergenceReport report = ledger_.MakeReport({});
  EXPECT_EQ(report.streak(), 4U);
  EXPECT_EQ(report.examples(), 11U);
}

TEST_F(LedgerTest, ABatchEndIsAnUpdateWithoutAnExample) {
  Segment segment;
  segment.producer = "p";
  UpdateRow end;
  end.revision = 1;
  end.tally.updates = 1;
  segment.updates.push_back(end);
  EXPECT_EQ(ledger_.Apply(*producer_, segment, names_).next_offset, 0);
  const JournalEntry entry = ledger_.TakePending();
  EXPECT_EQ(entry.counters.report().examples(), 0U);
  EXPECT_EQ(entry.counters.report().updates(), 1U);
  ASSERT_EQ(entry.records.size(), 1U);
  EXPECT_EQ(entry.records[0].batch_ends_size(), 1);
}

absl::StatusCode FindAs(Ledger& ledger, const Caller& caller, const char* id) {
  return testing::As(caller, [&] { return ledger.FindProducer(id); }).status().code();
}

TEST(ProducerOwners, AnIdBelongsToThePrincipalThatUsedItFirst) {
  const testing::TestCaller alice("alice");
  const testing::TestCaller bob("bob");
  const testing::TestCaller renamed("carol", "alice");
  CommittedState committed;
  committed.positions.emplace_back().set_id("older");
  for (const char* const id : {"p", "older"}) {
    SCOPED_TRACE(id);
    Ledger ledger(committed, StoredExamplesSettings(), TheoremContext(), 2);
    {
      // A stream that has learned nothing yet.
      const auto producer = testing::As(alice, [&] { return ledger.FindProducer(id).value(); });
      EXPECT_EQ(FindAs(ledger, bob, id), absl::StatusCode::kPermissionDenied);
      MutexLock turn(&producer->turn);
      ledger.Resume(*producer, 7);
    }
    // Also once the model was loaded again.
    Ledger loaded(ledger.CopyState(), StoredExamplesSettings(), TheoremContext(), 2);
    for (Ledger* const one : {&ledger, &loaded}) {
      EXPECT_EQ(FindAs(*one, bob, id), absl::StatusCode::kPermissionDenied);
      EXPECT_EQ(FindAs(*one, alice, id), absl::StatusCode::kOk);
      EXPECT_EQ(FindAs(*one, renamed, id), absl::StatusCode::kOk);
      // Without access control everybody may do everything, and takes nothing away.
      EXPECT_OK(one->FindProducer(id).status());
      EXPECT_EQ(FindAs(*one, bob, id), absl::StatusCode::kPermissionDenied);
    }
  }
}

TEST(ProducerOwners, AnIdThatWasNotUsedIsFree) {
  Ledger ledger(CommittedState(), StoredExamplesSettings(), TheoremContext(), 1);
  EXPECT_EQ(FindAs(ledger, testing::TestCaller("bob"), "p"), absl::StatusCode::kOk);
  EXPECT_EQ(FindAs(ledger, testing::TestCaller("alice"), "p"), absl::StatusCode::kOk);
}

}  // namespace
}  // namespace perceptrond
