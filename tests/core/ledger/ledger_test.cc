// A ledger and its readers, and the owners of its producers.
#include "core/ledger/ledger.h"

#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/caller.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

// Learning releases the state's lock then: a reader that takes it must find the segment.
TEST(Ledger, AReaderAfterItIsLockedFindsTheSegment) {
  Segment segment;
  segment.producer = "p";
  segment.rows = 7;
  Tally& tally = segment.unchanged.emplace_back().tally;
  tally.examples = 7;
  tally.min_score = 1;
  Ledger ledger(CommittedState(), StoredExamplesSettings(), TheoremContext(), 10);
  const std::shared_ptr<Producer> producer = ledger.FindProducer("p").value();
  std::thread reader;
  uint64_t examples = 0;
  ledger.Apply(*producer, segment, Dictionary(),
               [&] { reader = std::thread([&] { examples = ledger.MakeReport({}).examples(); }); });
  reader.join();
  EXPECT_EQ(examples, 7U);
}

TEST(LedgerEpochs, AStateIsKeptUpToWhereTheNextEpochBegan) {
  CommittedState committed;
  committed.epochs = {{10, 0}, {20, 7}};
  Ledger ledger(committed, StoredExamplesSettings(), TheoremContext(), 10);
  const auto has = [&](int64_t epoch, uint64_t revision) {
    return ledger.HasState(epoch, revision, /*current=*/12);
  };
  EXPECT_TRUE(has(10, 5));
  EXPECT_TRUE(has(10, 7));
  EXPECT_FALSE(has(10, 8));
  EXPECT_TRUE(has(20, 12));
  EXPECT_FALSE(has(20, 13));
  // Epochs without an update, or of a copy of the log that went another way.
  EXPECT_TRUE(has(15, 7));
  EXPECT_FALSE(has(15, 6));
  EXPECT_FALSE(has(15, 8));
  EXPECT_FALSE(has(9, 7));
  ledger.BeginEpoch({20, 9});
  EXPECT_TRUE(has(20, 12));
  for (const int64_t epoch : {30, 40}) {
    ledger.BeginEpoch({epoch, 12});
    EXPECT_FALSE(has(10, 8));
    EXPECT_TRUE(has(20, 12));
    EXPECT_FALSE(has(20, 13));
    EXPECT_TRUE(has(epoch, 12));
    // The log does not have it.
    EXPECT_FALSE(has(50, 13));
  }
  EXPECT_TRUE(has(30, 12));
}

TEST(LedgerEpochs, TheEntryWithAnEpochsFirstUpdateSaysWhereItBegan) {
  CommittedState committed;
  committed.epochs = {{10, 0}};
  Ledger ledger(committed, StoredExamplesSettings(), TheoremContext(), 10);
  ledger.BeginEpoch({20, 7});
  EXPECT_THAT(ledger.EpochsBegunBy(8), ::testing::ElementsAre(EpochBegin{20, 7}));
  EXPECT_TRUE(ledger.EpochsBegunBy(9).empty());
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
