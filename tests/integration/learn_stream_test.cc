// LearnStream's contracts, over a real connection: order, acknowledgement, exactly once, pass
// marks.
#include "tests/integration/learn_stream_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(LearnStreamTest, AnswersEachMessageWithWhatHappenedBeforeEachExampleWasLearned) {
  RawLearnStream stream(*learning_, "line");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.model_uid(), Get("line").uid());
  EXPECT_EQ(opened.revision(), 0);
  EXPECT_EQ(opened.next_offset(), 0);
  const v1::LearnResult result = stream.Ask(Line());
  EXPECT_EQ(result.message_number(), 1);
  // From zero: s = 0 is a mistake (w = 1, b = 1); then 2 + 1 = 3 is right; 3 + 1 = 4 is a mistake
  // (w = -2, b = 0); then -8 is right.
  EXPECT_THAT(result.scores(), ::testing::ElementsAre(0, 3, 4, -8));
  EXPECT_THAT(result.predicted_labels(), ::testing::ElementsAre(-1, 1, 1, -1));
  EXPECT_THAT(result.updated_rows(), ::testing::ElementsAre(0, 2));
  EXPECT_THAT(result.update_revisions(), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(result.examples(), 4);
  EXPECT_EQ(result.mistakes(), 2);
  EXPECT_EQ(result.updates(), 2);
  EXPECT_EQ(result.revision(), 2);
  EXPECT_EQ(result.acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, AnswersCarryTheReportAsOfTheirLastResultIfTheFirstMessageAsksForIt) {
  for (const bool asked : {true, false}) {
    const std::string name = asked ? "with" : "without";
    CreateDense(name, 1);
    RawLearnStream stream(*learning_, name);
    stream.first().set_include_report(asked);
    stream.Open();
    for (int message = 1; message <= 8; ++message) stream.Send(Line());
    for (int message = 1; message <= 8; ++message) {
      const v1::LearnResult result = stream.Result();
      ASSERT_EQ(stream.answer().has_report(), asked);
      if (!asked) continue;
      const v1::ConvergenceReport& report = stream.answer().report();
      const v1::LearnResult& last = *stream.answer().results().rbegin();
      EXPECT_EQ(report.updates(), static_cast<uint64_t>(last.revision()));
      EXPECT_EQ(report.examples(), static_cast<uint64_t>(last.acknowledged_offset()) + 1);
      EXPECT_TRUE(report.has_margin_ceiling());
    }
    const std::string latest = stream.answer().report().ShortDebugString();
    EXPECT_TRUE(stream.Finish().ok());
    EXPECT_EQ(latest, asked ? Get(name).report().ShortDebugString() : "");
  }
}

TEST_F(LearnStreamTest, PassMarksFindTheConvergenceOfTheTextbook) {
  RawLearnStream stream(*learning_, "line");
  stream.Open();
  uint64_t updates = 0;
  for (int pass = 1; pass <= 11; ++pass) {
    v1::LearnStreamRequest request = Line();
    request.set_completed_pass(pass);
    const v1::LearnResult result = stream.Ask(request);
    updates += result.updates();
    EXPECT_EQ(result.completed_pass().number(), pass);
    EXPECT_EQ(result.completed_pass().examples(), 4);
    EXPECT_EQ(result.completed_pass().updates(), result.updates());
    EXPECT_EQ(result.completed_pass().converged(), pass == 11) << pass;
  }
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(updates, 25);
  const v1::Model model = Get("line");
  EXPECT_EQ(model.revision(), 25);
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(-3));
  EXPECT_EQ(model.weights().vectors(0).bias(), 7);
  EXPECT_EQ(model.report().last_pass().number(), 11);
  // gamma* = 0.18569, R = sqrt(17).
  EXPECT_GE(model.report().margin_ceiling(), 0.18569);
  EXPECT_LE(model.report().margin_floor(), 0.18570);
  EXPECT_NEAR(model.report().radius(), std::sqrt(17), 1e-12);
}

TEST_F(LearnStreamTest, SmallerAnswersCarryUpdatesButNoScores) {
  RawLearnStream stream(*learning_, "line");
  stream.first().set_result_detail(v1::RESULT_DETAIL_UPDATES);
  stream.Open();
  const v1::LearnResult result = stream.Ask(Line());
  EXPECT_EQ(result.scores_size(), 0);
  EXPECT_THAT(result.updated_rows(), ::testing::ElementsAre(0, 2));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, ReplayedNumbersAreAcknowledgedAndNotLearnedAgain) {
  {
    RawLearnStream stream(*learning_, "line", "p");
    stream.Open();
    v1::LearnStreamRequest request = Line();
    request.set_first_offset(0);
    EXPECT_EQ(stream.Ask(request).duplicates(), 0);
    const v1::LearnResult again = stream.Ask(request);
    EXPECT_EQ(again.duplicates(), 4);
    EXPECT_EQ(again.examples(), 0);
    EXPECT_EQ(again.acknowledged_offset(), 3);
    // Half of it is new.
    request.set_first_offset(2);
    const v1::LearnResult half = stream.Ask(request);
    EXPECT_EQ(half.duplicates(), 2);
    EXPECT_EQ(half.examples(), 2);
    EXPECT_TRUE(std::isnan(half.scores(0)));
    EXPECT_FALSE(std::isnan(half.scores(2)));
    EXPECT_TRUE(stream.Finish().ok());
  }
  RawLearnStream next(*learning_, "line", "p");
  EXPECT_EQ(next.Open().next_offset(), 6);
  EXPECT_TRUE(next.Finish().ok());
  EXPECT_EQ(Get("line").report().duplicates(), 6);
  EXPECT_EQ(Get("line").report().examples(), 6);
}

TEST_F(LearnStreamTest, MessagesThatFollowAReplayAreReplaysTooUnlessTheySayOtherwise) {
  for (int round = 0; round < 2; ++round) {
    RawLearnStream stream(*learning_, "line", "p");
    EXPECT_EQ(stream.Open().next_offset(), round * 8);
    v1::LearnStreamRequest first = Line();
    first.set_first_offset(0);
    EXPECT_EQ(stream.Ask(first).duplicates(), round * 4);
    const v1::LearnResult second = stream.Ask(Line());
    EXPECT_EQ(second.duplicates(), round * 4);
    EXPECT_EQ(second.acknowledged_offset(), 7);
    EXPECT_TRUE(stream.Finish().ok());
  }
  EXPECT_EQ(Get("line").report().examples(), 8);
}

TEST_F(LearnStreamTest, AGapIsRefusedInBandAndSaysWhatIsExpected) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(5);
  const v1::LearnResult gap = stream.Ask(request);
  EXPECT_EQ(gap.error().code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Reason(gap.error()), "OFFSET_GAP");
  EXPECT_EQ(Metadata(gap.error(), "expected_offset"), "0");
  EXPECT_EQ(gap.acknowledged_offset(), -1);
  EXPECT_EQ(gap.revision(), 0);
  request.set_first_offset(0);
  EXPECT_EQ(stream.Ask(request).examples(), 4);
  request.Clear();
  request.set_completed_pass(3);
  EXPECT_EQ(Reason(stream.Ask(request).error()), "PASS_GAP");
  request.set_completed_pass(-1);
  EXPECT_EQ(BadField(stream.Ask(request).error()), "completed_pass");
  request.clear_completed_pass();
  request.set_model("models/other");
  EXPECT_EQ(BadField(stream.Ask(request).error()), "model");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, AMarkSentAgainIsAnsweredAgain) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(0);
  request.set_completed_pass(1);
  const v1::LearnResult first = stream.Ask(request);
  const v1::LearnResult again = stream.Ask(request);
  EXPECT_EQ(first.completed_pass().SerializeAsString(), again.completed_pass().SerializeAsString());
  EXPECT_EQ(again.duplicates(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, ResumingPassesOverWhatWasAcknowledgedAndRefusesAnotherModelsClaim) {
  RawLearnStream stream(*learning_, "line", "p");
  v1::Producer::Resume& resume = *stream.first().mutable_producer()->mutable_resume();
  resume.set_model_uid(Get("line").uid());
  resume.set_acknowledged_offset(9);
  resume.set_acknowledged_revision(0);
  EXPECT_EQ(stream.Open().next_offset(), 10);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 0);
  RawLearnStream other(*learning_, "line", "q");
  other.first().mutable_producer()->mutable_resume()->set_model_uid("another");
  other.Send(other.first());
  const grpc::Status status = other.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "MODEL_REPLACED");
}

TEST_F(LearnStreamTest, APassThatHasEndedTakesNoMoreExamples) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(0);
  request.set_completed_pass(1);
  const v1::LearnResult first = stream.Ask(request);
  // Sent again, as after a lost answer.
  EXPECT_EQ(stream.Ask(request).completed_pass().SerializeAsString(),
            first.completed_pass().SerializeAsString());
  request.set_first_offset(4);
  const v1::LearnResult row_errors = stream.Ask(request);
  EXPECT_EQ(row_errors.error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(row_errors.error()), "PASS_ENDED");
  EXPECT_EQ(row_errors.acknowledged_offset(), 3);
  request.set_completed_pass(2);
  EXPECT_EQ(stream.Ask(request).completed_pass().number(), 2);
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
