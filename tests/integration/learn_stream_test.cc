// LearnStream's contracts, over a real connection: order, acknowledgement, exactly once, in-band
// errors, pass marks.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class LearnStreamTest : public ServerTest {
 protected:
  LearnStreamTest() { CreateDense("line", 1); }

  static v1::LearnStreamRequest Columns(std::initializer_list<std::pair<float, int>> examples) {
    v1::LearnStreamRequest request;
    v1::ExampleColumns& columns = *request.mutable_columns();
    columns.set_dense_width(1);
    for (const auto& [x, y] : examples) {
      columns.add_values(x);
      columns.add_labels(y);
    }
    return request;
  }
  // ALGORITHMS, section 2, "one dimension".
  static v1::LearnStreamRequest Line() { return Columns({{1, 1}, {2, 1}, {3, -1}, {4, -1}}); }
};

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
  EXPECT_THAT(result.predicted(), ::testing::ElementsAre(-1, 1, 1, -1));
  EXPECT_THAT(result.updated_rows(), ::testing::ElementsAre(0, 2));
  EXPECT_THAT(result.update_revisions(), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(result.examples(), 4);
  EXPECT_EQ(result.mistakes(), 2);
  EXPECT_EQ(result.updates(), 2);
  EXPECT_EQ(result.revision(), 2);
  EXPECT_EQ(result.acknowledged_through(), 3);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, PassMarksFindTheConvergenceOfTheTextbook) {
  RawLearnStream stream(*learning_, "line");
  stream.Open();
  uint64_t updates = 0;
  for (int pass = 1; pass <= 11; ++pass) {
    v1::LearnStreamRequest request = Line();
    request.set_end_of_pass(pass);
    const v1::LearnResult result = stream.Ask(request);
    updates += result.updates();
    EXPECT_EQ(result.pass().number(), pass);
    EXPECT_EQ(result.pass().examples(), 4);
    EXPECT_EQ(result.pass().updates(), result.updates());
    EXPECT_EQ(result.pass().converged(), pass == 11) << pass;
  }
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(updates, 25);
  const v1::Model model = Get("line");
  EXPECT_EQ(model.revision(), 25);
  EXPECT_THAT(model.weights().values(), ::testing::ElementsAre(-3));
  EXPECT_EQ(model.weights().offset(), 7);
  EXPECT_EQ(model.report().last_pass().number(), 11);
  // gamma* = 0.18569, R = sqrt(17).
  EXPECT_GE(model.report().margin_ceiling(), 0.18569);
  EXPECT_LE(model.report().margin_floor(), 0.18570);
  EXPECT_NEAR(model.report().radius(), std::sqrt(17), 1e-12);
}

TEST_F(LearnStreamTest, SmallerAnswersCarryUpdatesButNoScores) {
  RawLearnStream stream(*learning_, "line");
  stream.first().set_answer_detail(v1::ANSWER_DETAIL_UPDATES);
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
    EXPECT_EQ(again.acknowledged_through(), 3);
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

TEST_F(LearnStreamTest, AGapIsRefusedInBandAndSaysWhatIsExpected) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(5);
  const v1::LearnResult gap = stream.Ask(request);
  EXPECT_EQ(gap.error().code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Reason(gap.error()), "OFFSET_GAP");
  EXPECT_EQ(Metadata(gap.error(), "expected_offset"), "0");
  EXPECT_EQ(gap.acknowledged_through(), -1);
  EXPECT_EQ(gap.revision(), 0);
  request.set_first_offset(0);
  EXPECT_EQ(stream.Ask(request).examples(), 4);
  request.Clear();
  request.set_end_of_pass(3);
  EXPECT_EQ(Reason(stream.Ask(request).error()), "PASS_GAP");
  request.set_end_of_pass(-1);
  EXPECT_EQ(BadField(stream.Ask(request).error()), "end_of_pass");
  request.clear_end_of_pass();
  request.set_model("models/other");
  EXPECT_EQ(BadField(stream.Ask(request).error()), "model");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, AMarkSentAgainIsAnsweredAgain) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(0);
  request.set_end_of_pass(1);
  const v1::LearnResult first = stream.Ask(request);
  const v1::LearnResult again = stream.Ask(request);
  EXPECT_EQ(first.pass().SerializeAsString(), again.pass().SerializeAsString());
  EXPECT_EQ(again.duplicates(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, BadRowsAreRefusedOneByOneAndTheStreamGoesOn) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(1, {{0, 1}});
  *request.add_examples() = SparseExample(1, {{0, NAN}});
  *request.add_examples() = SparseExample(1, {{1, 1}});
  *request.add_examples() = SparseExample(2, {{0, 1}});
  *request.add_examples() = SparseExample(-1, {{0, 1}});
  request.mutable_examples(4)->clear_target();
  request.add_examples()->mutable_dense()->add_values(1);
  request.mutable_examples(5)->mutable_dense()->add_values(1);
  request.mutable_examples(5)->set_label(1);
  *request.add_examples() = SparseExample(-1, {{0, 3}});
  const v1::LearnResult result = stream.Ask(request);
  EXPECT_EQ(result.examples(), 2);
  EXPECT_EQ(result.acknowledged_through(), 6);
  ASSERT_EQ(result.errors_size(), 5);
  const struct {
    uint32_t row;
    const char* reason;
    const char* field;
  } expected[] = {{1, "NON_FINITE_VALUE", "examples[1].values[0]"},
                  {2, "INDEX_OUT_OF_RANGE", "examples[2].indices[0]"},
                  {3, "UNKNOWN_LABEL", "examples[3].label"},
                  {4, "MISSING_LABEL", "examples[4].label"},
                  {5, "WRONG_DIMENSION", "examples[5].dense.values"}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(result.errors(i).row(), expected[i].row);
    EXPECT_EQ(result.errors(i).status().code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(Reason(result.errors(i).status()), expected[i].reason);
    EXPECT_EQ(BadField(result.errors(i).status()), expected[i].field);
  }
  EXPECT_TRUE(stream.Finish().ok());
  const v1::Model model = Get("line");
  EXPECT_EQ(model.report().examples(), 2);
  EXPECT_EQ(model.report().rejected().at("NON_FINITE_VALUE"), 1);
  // +1 at 1, then -1 at 3: w = 1 - 3, offset 1 - 1; nothing of the five between.
  EXPECT_THAT(model.weights().values(), ::testing::ElementsAre(-2));
  EXPECT_EQ(model.weights().offset(), 0);
}

TEST_F(LearnStreamTest, AMessageThatContradictsItselfIsRefusedWhole) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest both = Line();
  *both.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(Reason(stream.Ask(both).error()), "BOTH_FORMS");
  v1::LearnStreamRequest labels = Line();
  labels.mutable_columns()->add_labels(1);
  EXPECT_EQ(Reason(stream.Ask(labels).error()), "MALFORMED_COLUMNS");
  v1::LearnStreamRequest ends;
  ends.mutable_columns()->add_row_ends(3);
  ends.mutable_columns()->add_indices(0);
  ends.mutable_columns()->add_labels(1);
  const v1::LearnResult refused = stream.Ask(ends);
  EXPECT_EQ(Reason(refused.error()), "MALFORMED_COLUMNS");
  EXPECT_EQ(BadField(refused.error()), "columns.row_ends");
  v1::LearnStreamRequest names = Line();
  names.mutable_columns()->set_dense_width(0);
  names.mutable_columns()->clear_values();
  names.mutable_columns()->clear_labels();
  names.mutable_columns()->add_feature_names("b");
  names.mutable_columns()->add_feature_names("a");
  EXPECT_EQ(Reason(stream.Ask(names).error()), "MALFORMED_COLUMNS");
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, AFrozenModelRefusesInBandAndGoesOnWhenUnfrozen) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::Model model;
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/line");
  grpc::ClientContext freezing;
  ASSERT_TRUE(models_->FreezeModel(&freezing, freeze, &model).ok());
  EXPECT_EQ(model.state(), v1::MODEL_STATE_FROZEN);
  const v1::LearnResult refused = stream.Ask(Line());
  EXPECT_EQ(refused.error().code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(refused.error()), "MODEL_FROZEN");
  v1::UnfreezeModelRequest unfreeze;
  unfreeze.set_name("models/line");
  grpc::ClientContext unfreezing;
  ASSERT_TRUE(models_->UnfreezeModel(&unfreezing, unfreeze, &model).ok());
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, EndsWhenTheModelIsDeleted) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::DeleteModelRequest request;
  request.set_name("models/line");
  grpc::ClientContext context;
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
  stream.Send(Line());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
}

TEST_F(LearnStreamTest, ANewerStreamOfTheSameProducerEndsTheOlder) {
  RawLearnStream older(*learning_, "line", "p");
  older.Open();
  RawLearnStream newer(*learning_, "line", "p");
  newer.Open();
  older.Send(Line());
  const grpc::Status status = older.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "PRODUCER_SUPERSEDED");
  EXPECT_EQ(newer.Ask(Line()).examples(), 4);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(LearnStreamTest, ResumingCountsWhatWasAcknowledgedAndRefusesAnotherModelsClaim) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.first().mutable_producer()->mutable_resume()->set_model_uid(Get("line").uid());
  stream.first().mutable_producer()->mutable_resume()->set_acknowledged_through(9);
  EXPECT_EQ(stream.Open().next_offset(), 10);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 10);
  RawLearnStream other(*learning_, "line", "q");
  other.first().mutable_producer()->mutable_resume()->set_model_uid("another");
  other.Send(other.first());
  const grpc::Status status = other.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "MODEL_REPLACED");
}

TEST_F(LearnStreamTest, EndsWithAReasonWhenItCannotBegin) {
  RawLearnStream unknown(*learning_, "nobody");
  unknown.Send(unknown.first());
  EXPECT_EQ(Reason(unknown.Finish()), "MODEL_NOT_FOUND");
  RawLearnStream nameless(*learning_, "line");
  nameless.Send(v1::LearnStreamRequest());
  EXPECT_EQ(Reason(nameless.Finish()), "MISSING_MODEL");
}

TEST_F(LearnStreamTest, BytesThatAreNoMessageEndTheStreamAndWhatCameBeforeIsAnswered) {
  v1::LearnStreamRequest open = Line();
  open.set_model("models/line");
  const std::string whole = open.SerializeAsString();
  std::vector<std::string> answers;
  const grpc::Status status = CallRaw("/perceptron.v1.LearningService/LearnStream",
                                      {whole, whole.substr(0, whole.size() - 1)}, &answers);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "MALFORMED_MESSAGE");
  uint64_t learned = 0;
  for (const std::string& bytes : answers) {
    v1::LearnStreamResponse answer;
    ASSERT_TRUE(answer.ParseFromString(bytes));
    for (const v1::LearnResult& result : answer.results()) learned += result.examples();
  }
  EXPECT_EQ(learned, 4);
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, AMessageThatIsTooLargeIsResourceExhausted) {
  const grpc::Status status =
      CallRaw("/perceptron.v1.LearningService/LearnStream", {std::string((16 << 20) + 1, 'x')});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Get("line").report().examples(), 0);
}

TEST_F(LearnStreamTest, DrainingAnswersWhatWasTakenAndThenSaysWhy) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  server_.Signal(SIGTERM);
  // The server ends the stream by itself: nothing was half-closed.
  while (stream.Read()) {
  }
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "DRAINING");
  EXPECT_EQ(server_.Wait(), 0);
  Restart();
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, StateCountersAndPassSurviveASigkill) {
  std::string before;
  {
    RawLearnStream stream(*learning_, "line", "p");
    stream.Open();
    v1::LearnStreamRequest request = Line();
    request.set_first_offset(0);
    request.set_end_of_pass(1);
    stream.Ask(request);
    // In the middle of the second pass.
    v1::LearnStreamRequest half = Columns({{1, 1}, {2, 1}});
    half.set_first_offset(4);
    stream.Ask(half);
    v1::Model model = Get("line");
    model.mutable_report()->clear_window_examples();
    model.mutable_report()->clear_window_error();
    model.mutable_report()->clear_window_risk();
    before = model.DebugString();
    server_.Kill();
  }
  Restart();
  v1::Model model = Get("line");
  model.mutable_report()->clear_window_examples();
  EXPECT_EQ(model.DebugString(), before);
  RawLearnStream stream(*learning_, "line", "p");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.next_offset(), 6);
  EXPECT_EQ(opened.passes(), 1);
  v1::LearnStreamRequest rest = Columns({{3, -1}, {4, -1}});
  rest.set_first_offset(6);
  rest.set_end_of_pass(2);
  EXPECT_EQ(stream.Ask(rest).pass().examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
