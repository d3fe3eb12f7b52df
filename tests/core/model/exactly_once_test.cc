// A producer numbers its examples: none is learned twice, none is missed unnoticed.
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::ReasonOf;
using testing::StateBytes;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class ExactlyOnce : public ::testing::Test {
 protected:
  absl::Status Learn(const Columns& columns, std::optional<int64_t> first,
                     int64_t completed_pass = 0, bool all_or_nothing = false) {
    LearnCall call;
    call.batch = columns.batch();
    call.producer = producer_.get();
    call.first_offset = first;
    call.completed_pass = completed_pass;
    call.all_or_nothing = all_or_nothing;
    return model_->Learn(call, outcome_);
  }
  int64_t Position() { return testing::PositionOf(*producer_).next_offset; }
  ConvergenceReport Report() { return MakeReport(*model_); }

  MemoryJournal journal_;
  const std::shared_ptr<Model> model_ =
      testing::MakeModel(journal_, testing::DenseSettings("model", 2));
  const std::shared_ptr<Producer> producer_ = model_->ledger().FindProducer("p").value();
  LearnOutcome outcome_;
  const Columns three_ = Columns().AddDense({1, 2}, 1).AddDense({2, 1}, -1).AddDense({3, 1}, 1);
};

TEST_F(ExactlyOnce, AReplayIsAcknowledgedAndNotLearned) {
  ASSERT_OK(Learn(three_, 0));
  EXPECT_EQ(outcome_.next_offset, 3);
  const std::string state = StateBytes(*model_);
  ASSERT_OK(Learn(three_, 0));
  EXPECT_EQ(outcome_.duplicates, 3U);
  EXPECT_EQ(outcome_.examples, 0U);
  EXPECT_EQ(outcome_.mistakes, 0U);
  EXPECT_TRUE(outcome_.updated_rows.empty());
  EXPECT_EQ(outcome_.next_offset, 3);
  EXPECT_EQ(outcome_.revision, 3U);
  EXPECT_EQ(outcome_.predicted, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_TRUE(std::isnan(outcome_.scores[0]));
  EXPECT_EQ(StateBytes(*model_), state);
  EXPECT_EQ(Report().examples(), 3U);
  EXPECT_EQ(Report().duplicates(), 3U);
}

TEST_F(ExactlyOnce, AnOverlapIsLearnedFromWhereItIsNew) {
  ASSERT_OK(Learn(three_, 0));
  ASSERT_OK(Learn(three_, 2));
  EXPECT_EQ(outcome_.duplicates, 1U);
  EXPECT_EQ(outcome_.examples, 2U);
  EXPECT_EQ(outcome_.next_offset, 5);
  EXPECT_EQ(outcome_.predicted[0], 0);
  EXPECT_NE(outcome_.predicted[1], 0);
}

TEST_F(ExactlyOnce, WithoutANumberExamplesFollowOneAnother) {
  ASSERT_OK(Learn(three_, std::nullopt));
  ASSERT_OK(Learn(three_, std::nullopt));
  EXPECT_EQ(outcome_.duplicates, 0U);
  EXPECT_EQ(outcome_.next_offset, 6);
}

TEST_F(ExactlyOnce, ANegativeOffsetIsInvalid) {
  const absl::Status status = Learn(three_, -1);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(ReasonOf(status), "INVALID_FIELD");
  EXPECT_EQ(Position(), 0);
}

TEST_F(ExactlyOnce, AGapIsOutOfRangeAndChangesNothing) {
  ASSERT_OK(Learn(three_, 0));
  const std::string state = StateBytes(*model_);
  for (const int64_t offset : {int64_t{4}, int64_t{1000}}) {
    const absl::Status status = Learn(three_, offset);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_EQ(ReasonOf(status), "OFFSET_GAP");
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(info.ParseFromString(std::string(*status.GetPayload(kErrorInfoUrl))));
    EXPECT_EQ(info.metadata().at("expected_offset"), "3");
  }
  EXPECT_EQ(Position(), 3);
  EXPECT_EQ(Report().examples(), 3U);
  EXPECT_EQ(Report().duplicates(), 0U);
  EXPECT_EQ(StateBytes(*model_), state);
}

TEST_F(ExactlyOnce, ThePositionMovesOverRefusedRows) {
  const Columns columns = Columns()
                              .AddDense({kNaN, 0}, 1)
                              .AddDense({1, 2}, 1)
                              .AddDense({1, 2}, 7)
                              .AddDense({1, 2}, -1)
                              .AddDense({1, kNaN}, 1);
  ASSERT_OK(Learn(columns, 0));
  EXPECT_EQ(outcome_.next_offset, 5);
  EXPECT_EQ(outcome_.examples, 2U);
  ASSERT_EQ(outcome_.row_errors.size(), 3U);
  EXPECT_EQ(outcome_.row_errors[0].row, 0U);
  EXPECT_EQ(outcome_.row_errors[0].error.code, ValidationCode::kNonFiniteValue);
  EXPECT_EQ(outcome_.row_errors[0].error.field, "values");
  EXPECT_EQ(outcome_.row_errors[0].error.position, 0);
  EXPECT_EQ(outcome_.row_errors[1].row, 2U);
  EXPECT_EQ(outcome_.row_errors[1].error.code, ValidationCode::kUnknownLabel);
  EXPECT_EQ(outcome_.row_errors[2].row, 4U);
  EXPECT_EQ(outcome_.predicted[0], 0);
  ASSERT_OK(Learn(columns, 0));
  EXPECT_EQ(outcome_.duplicates, 5U);
  EXPECT_EQ(Report().row_errors().at(ReasonName(ValidationCode::kNonFiniteValue)), 2U);
  EXPECT_EQ(Report().row_errors().at(ReasonName(ValidationCode::kUnknownLabel)), 1U);
}

TEST_F(ExactlyOnce, RowsWithErrorsFoundBeforehandAreRefusedAtTheirPosition) {
  const RowError bad[] = {{1, {ValidationCode::kWrongForm, "features", "neither"}},
                          {3, {ValidationCode::kLengthMismatch, "values", "short"}}};
  Columns columns;
  columns.Add({0}, {1}, 1).Add({}, {}, 0).Add({1}, {1}, -1).Add({}, {}, 0);
  LearnCall call;
  call.batch = columns.batch();
  call.row_errors = bad;
  call.producer = producer_.get();
  call.first_offset = 0;
  ASSERT_OK(model_->Learn(call, outcome_));
  ASSERT_EQ(outcome_.row_errors.size(), 2U);
  EXPECT_EQ(outcome_.row_errors[0].error.code, ValidationCode::kWrongForm);
  EXPECT_EQ(outcome_.row_errors[1].row, 3U);
  EXPECT_EQ(outcome_.row_errors[1].error.description, "short");
  EXPECT_EQ(outcome_.examples, 2U);
  EXPECT_EQ(outcome_.next_offset, 4);
  // Half replayed: the bad row among the replayed ones is not refused again.
  Columns more = columns;
  more.Add({0}, {1}, 1);
  call.batch = more.batch();
  call.first_offset = 2;
  ASSERT_OK(model_->Learn(call, outcome_));
  EXPECT_EQ(outcome_.duplicates, 2U);
  ASSERT_EQ(outcome_.row_errors.size(), 1U);
  EXPECT_EQ(outcome_.row_errors[0].row, 3U);
  EXPECT_EQ(outcome_.next_offset, 7);
}

TEST_F(ExactlyOnce, AllOrNothingLearnsNothingOfABatchWithABadRow) {
  const Columns columns = Columns().AddDense({1, 2}, 1).AddDense({1, 2}, 0);
  const absl::Status status = Learn(columns, 0, 0, /*all_or_nothing=*/true);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  ASSERT_EQ(outcome_.row_errors.size(), 1U);
  EXPECT_EQ(outcome_.row_errors[0].row, 1U);
  EXPECT_EQ(Position(), 0);
  EXPECT_EQ(model_->revision(), 0U);
  EXPECT_OK(Learn(three_, 0, 0, /*all_or_nothing=*/true));
  EXPECT_EQ(outcome_.examples, 3U);
}

TEST_F(ExactlyOnce, ARowThatWasRefusedIsAReplayToAllOrNothingToo) {
  const Columns columns = Columns().AddDense({1, 2}, 1).AddDense({1, 2}, 0);
  ASSERT_OK(Learn(columns, 0));
  ASSERT_EQ(outcome_.row_errors.size(), 1U);
  EXPECT_OK(Learn(columns, 0, 0, /*all_or_nothing=*/true));
  EXPECT_EQ(outcome_.duplicates, 2U);
}

TEST_F(ExactlyOnce, TheEndOfAPassIsMarkedOnce) {
  ASSERT_OK(Learn(three_, 0, 1));
  const PassSummary first = *outcome_.pass;
  EXPECT_EQ(first.number(), 1);
  EXPECT_EQ(first.examples(), 3U);
  ASSERT_OK(Learn(three_, 0, 1));  // the answer was lost, the message comes again
  EXPECT_EQ(outcome_.pass->SerializeAsString(), first.SerializeAsString());
  ASSERT_OK(Learn(three_, 3, 2));
  EXPECT_EQ(outcome_.pass->number(), 2);
  EXPECT_EQ(outcome_.pass->examples(), 3U);
  ASSERT_OK(Learn(Columns(), 0, 1));  // long forgotten
  EXPECT_EQ(outcome_.pass->number(), 1);
  EXPECT_EQ(outcome_.pass->examples(), 0U);
  EXPECT_FALSE(outcome_.pass->converged());
  EXPECT_EQ(Report().last_pass().number(), 2);
}

TEST_F(ExactlyOnce, AGapInPassesIsOutOfRange) {
  const absl::Status status = Learn(three_, 0, 2);
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_EQ(ReasonOf(status), "PASS_GAP");
  EXPECT_EQ(Position(), 0);
}

TEST_F(ExactlyOnce, ProducersHavePositionsOfTheirOwn) {
  ASSERT_OK(Learn(three_, 0));
  const std::shared_ptr<Producer> other = model_->ledger().FindProducer("q").value();
  LearnCall call;
  call.batch = three_.batch();
  call.producer = other.get();
  call.first_offset = 0;
  ASSERT_OK(model_->Learn(call, outcome_));
  EXPECT_EQ(outcome_.duplicates, 0U);
  EXPECT_EQ(outcome_.next_offset, 3);
  EXPECT_EQ(Report().examples(), 6U);
}

TEST_F(ExactlyOnce, AResumeRaisesThePositionButNeverLowersIt) {
  ASSERT_OK(Learn(three_, 0));
  model_->ledger().Resume(*producer_, 10);
  EXPECT_EQ(Position(), 10);
  model_->ledger().Resume(*producer_, 5);
  EXPECT_EQ(Position(), 10);
  ASSERT_OK(Learn(Columns(), 10, 1));
  EXPECT_FALSE(outcome_.pass->converged());
}

TEST_F(ExactlyOnce, AResumeCountsNothingWhateverItClaims) {
  ASSERT_OK(Learn(three_, 0));
  model_->ledger().Resume(*producer_, int64_t{1} << 48);
  EXPECT_EQ(Position(), int64_t{1} << 48);
  EXPECT_EQ(Report().examples(), 3U);
  EXPECT_EQ(Report().mistakes(), 3U);
}

TEST_F(ExactlyOnce, APassWithExamplesThatWereResumedOverIsNotCertified) {
  while (Learn(three_, std::nullopt).ok() && outcome_.mistakes > 0) {
  }
  ASSERT_OK(Learn(three_, std::nullopt, 1));
  ASSERT_OK(Learn(three_, std::nullopt));
  model_->ledger().Resume(*producer_, Position() + 1);
  ASSERT_OK(Learn(three_, std::nullopt, 2));
  EXPECT_EQ(outcome_.pass->mistakes(), 0U);
  EXPECT_FALSE(outcome_.pass->converged());
}

TEST_F(ExactlyOnce, AReplayIsAcknowledgedByAFrozenModelAndNothingElseIs) {
  ASSERT_OK(Learn(three_, 0, 1));
  const std::string state = StateBytes(*model_);
  testing::Freeze(*model_, true);
  ASSERT_OK(Learn(three_, 0, 1));
  EXPECT_EQ(outcome_.duplicates, 3U);
  EXPECT_EQ(outcome_.next_offset, 3);
  EXPECT_EQ(outcome_.pass->number(), 1);
  ASSERT_OK(Learn(three_, 0, 0, /*all_or_nothing=*/true));
  EXPECT_EQ(outcome_.duplicates, 3U);
  EXPECT_EQ(ReasonOf(Learn(three_, 1)), "MODEL_FROZEN");
  EXPECT_EQ(ReasonOf(Learn(three_, 1, 0, /*all_or_nothing=*/true)), "MODEL_FROZEN");
  EXPECT_EQ(ReasonOf(Learn(three_, std::numeric_limits<int64_t>::max())), "MODEL_FROZEN");
  EXPECT_EQ(ReasonOf(Learn(Columns(), std::nullopt, 2)), "MODEL_FROZEN");
  EXPECT_EQ(Position(), 3);
  EXPECT_EQ(StateBytes(*model_), state);
  EXPECT_EQ(Report().examples(), 3U);
  EXPECT_EQ(Report().last_pass().number(), 1);
}

TEST_F(ExactlyOnce, TooManyProducersAreTurnedAwayAndOldOnesAreNot) {
  Ledger& ledger = model_->ledger();
  ASSERT_OK(Learn(three_, 0));
  for (size_t i = 1; i < Model::Limits().max_producers; ++i) {
    const auto producer = ledger.FindProducer(absl::StrCat("n", i));
    ASSERT_OK(producer.status());
    ledger.Resume(**producer, 1);
  }
  const absl::Status status = ledger.FindProducer("one more").status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(ReasonOf(status), "PRODUCER_LIMIT");
  EXPECT_TRUE(status.GetPayload(kRetryInfoUrl).has_value());
  EXPECT_OK(ledger.FindProducer("p").status());
}

TEST_F(ExactlyOnce, ARefusedProducerTakesNoSlotOfTheTable) {
  Ledger& ledger = model_->ledger();
  LearnOutcome outcome;
  const Columns bad = Columns().AddDense({1, kNaN}, 1);
  for (size_t i = 0; i < Model::Limits().max_producers; ++i) {
    const auto producer = ledger.FindProducer(absl::StrCat("refused", i));
    ASSERT_OK(producer.status());
    LearnCall call;
    call.batch = bad.batch();
    call.producer = producer->get();
    call.all_or_nothing = true;
    ASSERT_TRUE(absl::IsInvalidArgument(model_->Learn(call, outcome)));
  }
  std::vector<std::shared_ptr<Producer>> held;
  while (held.size() < Model::Limits().max_producers - 1) {  // with producer_
    const auto producer = ledger.FindProducer(absl::StrCat("held", held.size()));
    ASSERT_OK(producer.status());
    held.push_back(*producer);
  }
  EXPECT_EQ(ReasonOf(ledger.FindProducer("one more").status()), "PRODUCER_LIMIT");
  held.pop_back();
  EXPECT_OK(ledger.FindProducer("one more").status());
}

TEST_F(ExactlyOnce, CallersOfANewNameMeetOneProducer) {
  const auto first = model_->ledger().FindProducer("new").value();
  EXPECT_EQ(model_->ledger().FindProducer("new").value(), first);
  model_->ledger().Resume(*first, 1);
  EXPECT_EQ(model_->ledger().FindProducer("new").value(), first);
}

TEST_F(ExactlyOnce, ACutDropsThePredictionsOfItsRowsButNotOfErrorsAndReplays) {
  ASSERT_OK(Learn(three_, 0));
  EXPECT_TRUE(model_->ledger().TakePending().entry.learned_predictions.empty());
  // A replay, an update, an error, and a right row.
  const Columns four = Columns()
                           .AddDense({3, 1}, 1)
                           .AddDense({3, 1}, -1)
                           .AddDense({1, kNaN}, 1)
                           .AddDense({3, 1}, -1);
  const std::vector<PredictionOfRow> predictions = {{1, 11}, {2, 12}, {3, 13}};
  LearnCall call;
  call.batch = four.batch();
  call.producer = producer_.get();
  call.first_offset = 2;
  call.predictions = predictions;
  MutexLock turn(&producer_->turn);
  ASSERT_OK(model_->Learn(call, outcome_));
  EXPECT_EQ(outcome_.duplicates, 1U);
  ASSERT_EQ(outcome_.row_errors.size(), 1U);
  EXPECT_EQ(outcome_.row_errors[0].row, 2U);
  EXPECT_EQ(model_->ledger().TakePending().entry.learned_predictions,
            (std::vector<uint64_t>{11, 13}));
}

TEST_F(ExactlyOnce, ACutCountsExactlyWhatItHolds) {
  ASSERT_OK(Learn(three_, 0, 1));
  const JournalEntry first = model_->ledger().TakePending().entry;
  EXPECT_EQ(first.counters.report().updates(), LastRevision(first.records.back()));
  EXPECT_EQ(first.positions.at(0).next_offset(), 3);
  EXPECT_EQ(first.positions.at(0).passes(), 1);
  const JournalEntry idle = model_->ledger().TakePending().entry;
  EXPECT_TRUE(idle.records.empty());
  EXPECT_TRUE(idle.positions.empty());
  EXPECT_EQ(idle.counters.report().updates(), first.counters.report().updates());
  ASSERT_OK(Learn(three_, 3));
  const JournalEntry second = model_->ledger().TakePending().entry;
  EXPECT_EQ(second.positions.at(0).next_offset(), 6);
  EXPECT_EQ(second.positions.at(0).pass().summary().examples(), 3U);
}

}  // namespace
}  // namespace perceptrond
