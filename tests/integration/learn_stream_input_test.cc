// What LearnStream refuses: single rows and whole messages in-band, and what ends the stream.
#include <functional>

#include "tests/integration/learn_stream_fixture.h"

namespace perceptrond::testing {
namespace {

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
  EXPECT_EQ(result.acknowledged_offset(), 6);
  ASSERT_EQ(result.row_errors_size(), 5);
  const struct {
    uint32_t row;
    const char* reason;
    const char* field;
  } expected[] = {{1, "NON_FINITE_VALUE", "examples[1].sparse.values[0]"},
                  {2, "INDEX_OUT_OF_RANGE", "examples[2].sparse.indices[0]"},
                  {3, "UNKNOWN_LABEL", "examples[3].label"},
                  {4, "MISSING_LABEL", "examples[4].label"},
                  {5, "WRONG_DIMENSION", "examples[5].dense.values"}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(result.row_errors(i).row(), expected[i].row);
    EXPECT_EQ(result.row_errors(i).status().code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(Reason(result.row_errors(i).status()), expected[i].reason);
    EXPECT_EQ(BadField(result.row_errors(i).status()), expected[i].field);
  }
  EXPECT_TRUE(stream.Finish().ok());
  const v1::Model model = Get("line");
  EXPECT_EQ(model.report().examples(), 2);
  EXPECT_EQ(model.report().row_errors().at("NON_FINITE_VALUE"), 1);
  // +1 at 1, then -1 at 3: w = 1 - 3, offset 1 - 1; nothing of the five between.
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(-2));
  EXPECT_EQ(model.weights().vectors(0).bias(), 0);
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
  const v1::LearnResult row_errors = stream.Ask(ends);
  EXPECT_EQ(Reason(row_errors.error()), "MALFORMED_COLUMNS");
  EXPECT_EQ(BadField(row_errors.error()), "columns.row_ends");
  v1::LearnStreamRequest names = Line();
  names.mutable_columns()->set_dense_width(0);
  names.mutable_columns()->clear_values();
  names.mutable_columns()->clear_labels();
  names.mutable_columns()->mutable_feature_names()->set_text("ab");
  names.mutable_columns()->mutable_feature_names()->add_lengths(1);
  EXPECT_EQ(Reason(stream.Ask(names).error()), "MALFORMED_COLUMNS");
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, ALaterMessageMayRepeatTheStreamsFieldsButNotChangeThem) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  const auto refused = [&](const std::string& field,
                           const std::function<void(v1::LearnStreamRequest&)>& set) {
    v1::LearnStreamRequest request = Line();
    set(request);
    const v1::LearnResult result = stream.Ask(request);
    EXPECT_EQ(Reason(result.error()), "INVALID_FIELD") << field;
    EXPECT_EQ(BadField(result.error()), field);
    EXPECT_EQ(result.acknowledged_offset(), -1) << field;
  };
  refused("model", [](auto& request) { request.set_model("models/other"); });
  refused("producer.id", [](auto& request) { request.mutable_producer()->set_id("q"); });
  refused("producer.resume", [](auto& request) {
    request.mutable_producer()->set_id("p");
    request.mutable_producer()->mutable_resume()->set_acknowledged_offset(7);
  });
  refused("result_detail",
          [](auto& request) { request.set_result_detail(v1::RESULT_DETAIL_UPDATES); });
  refused("include_report", [](auto& request) { request.set_include_report(true); });
  v1::LearnStreamRequest same = Line();
  same.set_model("models/line");
  same.mutable_producer()->set_id("p");
  same.set_result_detail(v1::RESULT_DETAIL_FULL);
  EXPECT_EQ(stream.Ask(same).acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 4);
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

TEST_F(LearnStreamTest, AMessageThatIsTooLargeEndsTheStreamAndSaysHowLargeIsAllowed) {
  v1::LearnStreamRequest open = Line();
  open.set_model("models/line");
  const grpc::Status status = CallRaw("/perceptron.v1.LearningService/LearnStream",
                                      {open.SerializeAsString(), std::string((16 << 20) + 1, 'x')});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, AMessageFarTooLargeIsNotEvenParsed) {
  const grpc::Status status =
      CallRaw("/perceptron.v1.LearningService/LearnStream", {std::string((64 << 20) + 1, 'x')});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Get("line").report().examples(), 0);
}

TEST_F(LearnStreamTest, AMessageOfTooManyExamplesIsRefusedInBandInEitherForm) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  constexpr int kOneTooMany = (1 << 16) + 1;
  v1::LearnStreamRequest columns;
  columns.mutable_columns()->mutable_row_ends()->Resize(kOneTooMany, 0);
  columns.mutable_columns()->mutable_labels()->Resize(kOneTooMany, 1);
  EXPECT_EQ(Reason(stream.Ask(columns).error()), "TOO_MANY_EXAMPLES");
  v1::LearnStreamRequest examples;
  for (int i = 0; i < kOneTooMany; ++i) examples.add_examples()->set_label(1);
  EXPECT_EQ(Reason(stream.Ask(examples).error()), "TOO_MANY_EXAMPLES");
  EXPECT_EQ(stream.Ask(Line()).acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, EveryRefusedRowIsNamedAndTheFirstThousandSayWhere) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request;
  request.mutable_columns()->mutable_row_ends()->Resize(3000, 0);
  request.mutable_columns()->mutable_labels()->Resize(3000, 7);
  const v1::LearnResult result = stream.Ask(request);
  ASSERT_EQ(result.row_errors_size(), 3000);
  EXPECT_EQ(BadField(result.row_errors(999).status()), "columns.labels[999]");
  const v1::RowError& last = result.row_errors(2999);
  EXPECT_EQ(last.row(), 2999);
  EXPECT_EQ(last.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(last.status().message(), "UNKNOWN_LABEL");
  EXPECT_EQ(last.status().details_size(), 0);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, ARefusedRowOfColumnsIsNamedByItsPositionInThem) {
  Create("wide", [] {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(9);
    return settings;
  }());
  RawLearnStream stream(*learning_, "wide");
  stream.Open();
  v1::LearnStreamRequest request;
  v1::ExampleColumns& columns = *request.mutable_columns();
  for (const uint32_t end : {2, 4, 6, 6}) columns.add_row_ends(end);
  for (const uint32_t index : {1, 2, 3, 3, 4, 8}) columns.add_indices(index);
  for (const float value : {1.0F, NAN, 1.0F, 1.0F, 1.0F, 1.0F}) columns.add_values(value);
  for (const int label : {1, 1, 1, 0}) columns.add_labels(label);
  const v1::LearnResult result = stream.Ask(request);
  ASSERT_EQ(result.row_errors_size(), 3);
  EXPECT_EQ(BadField(result.row_errors(0).status()), "columns.values[1]");
  EXPECT_EQ(BadField(result.row_errors(1).status()), "columns.indices[3]");
  EXPECT_EQ(BadField(result.row_errors(2).status()), "columns.labels[3]");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, AnOrderThatIsNoneIsRefused) {
  RawLearnStream stream(*learning_, "line");
  stream.first().set_order(static_cast<v1::StreamOrder>(99));
  stream.Send(stream.first());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(Reason(status), "INVALID_FIELD");
  EXPECT_EQ(BadField(status), "order");
}

TEST_F(LearnStreamTest, AnAnswerDetailThatIsNoneIsRefused) {
  RawLearnStream stream(*learning_, "line");
  stream.first().set_result_detail(static_cast<v1::ResultDetail>(99));
  stream.Send(stream.first());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadField(status), "result_detail");
}

}  // namespace
}  // namespace perceptrond::testing
