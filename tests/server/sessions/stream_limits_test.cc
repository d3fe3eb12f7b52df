// When a stream is read no further: the bound counts what is kept for it, answers as well as requests. And which message has too
// many examples: it is refused by whatever reads examples, and none of them is looked at.
#include "server/rpc/backend.h"

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kBigRows = 10'000;

class StreamLimitsTest : public ::testing::Test {
 protected:
  StreamLimitsTest() {
    EXPECT_OK(store_.Create(testing::DenseSettings("models/m", 1), "", false).status());
  }
  // Has a session take messages until its answers, which nobody reads, fill it. Their rows have no features: a byte or two each,
  // answered by a dozen. Returns how many it took.
  template <typename Session>
  static int Fill(Session& session) {
    typename Session::Request request;
    request.message.set_model("models/m");
    v1::ExampleColumns& columns = *request.message.mutable_columns();
    columns.mutable_row_ends()->Resize(kBigRows, 0);
    columns.mutable_labels()->Resize(kBigRows, -1);
    int taken = 0;
    for (; !session.Poll(nullptr).Full() && taken < 1000; ++taken)
      EXPECT_OK(session.Accept(request, request.message.ByteSizeLong()));
    EXPECT_LE(taken, 20);
    return taken;
  }

  const StreamLimits limits_{1000, 10 * 8 * kBigRows};
  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
};

TEST_F(StreamLimitsTest, PredictionsThatNobodyReadsFillTheStreamByTheirSize) {
  PredictSession session(store_, limits_);
  int taken = Fill(session);
  v1::PredictResponse response;
  while (session.Poll(&response).has_response) --taken;
  EXPECT_EQ(taken, 0);
  EXPECT_FALSE(session.Poll(nullptr).Full());
  EXPECT_TRUE(session.Poll(nullptr).idle);
}

TEST_F(StreamLimitsTest, LearningAnswersThatNobodyReadsFillTheStreamByTheirSize) {
  const auto session = std::make_shared<LearnSession>(store_, limits_);
  session->OnReady([] {});
  Fill(*session);
}

// A stream that holds its model from message to message notices that it was deleted.
TEST_F(StreamLimitsTest, PredictionsEndWhenTheirModelIsDeleted) {
  PredictSession session(store_, StreamLimits{1000, 1 << 24});
  PredictSession::Request predict;
  predict.message.set_model("models/m");
  ASSERT_TRUE(session.Accept(predict, 1).ok());
  ASSERT_TRUE(store_.Delete("models/m", "", false).ok());
  EXPECT_TRUE(absl::IsNotFound(session.Accept(predict, 1)));
}

// Each of the message's `count` examples is `example`.
template <typename Message>
RequestWithExamples<Message> Request(size_t count, const v1::Example& example) {
  Message message;
  message.set_model("models/m");
  for (size_t i = 0; i < count; ++i) *message.add_examples() = example;
  const std::string bytes = message.SerializeAsString();
  grpc::ByteBuffer buffer = testing::ToBytes(bytes);
  RequestWithExamples<Message> request;
  EXPECT_OK(ParseMessage(buffer, bytes.size(), request));
  return request;
}

v1::Example Dense() {
  v1::Example example;
  example.mutable_dense()->add_values(1);
  example.set_label(1);
  return example;
}
v1::Example Kept() {
  v1::Example example;
  example.set_prediction_id("1.2");
  example.set_label(1);
  return example;
}

class TooManyExamples : public StreamLimitsTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(TooManyExamples, AreAsManyAsCanBeLookedAt) {
  const auto request = Request<v1::PredictRequest>(GetParam(), {});
  size_t examples = 0;
  for (const NestedExample& example : request.examples) examples += example.bytes.empty() ? 1 : 0;
  EXPECT_EQ(request.examples.size(), examples);
  EXPECT_GT(examples, NestedExamples::kMaxExamples);
}

TEST_P(TooManyExamples, AreRefusedToPredict) {
  for (const v1::Example& example : {v1::Example(), Dense(), Kept()}) {
    const auto request = Request<v1::PredictRequest>(GetParam(), example);
    v1::PredictResponse response;
    EXPECT_EQ(
        testing::ReasonOf(MessagePredictor(store_).Predict(request.model(), request, response)),
        "TOO_MANY_EXAMPLES");
  }
}

TEST_P(TooManyExamples, AreRefusedInColumnsBeforeThoseAreRead) {
  RequestWithExamples<v1::PredictRequest> request;
  request.message.set_model("models/m");
  v1::ExampleColumns& columns = *request.message.mutable_columns();
  // Two bytes a value.
  columns.set_half_values("odd");
  v1::PredictResponse response;
  const auto reason = [&] {
    return testing::ReasonOf(MessagePredictor(store_).Predict(request.model(), request, response));
  };
  EXPECT_EQ(reason(), "MALFORMED_COLUMNS");
  columns.mutable_row_ends()->Resize(static_cast<int>(GetParam()), 0);
  EXPECT_EQ(reason(), "TOO_MANY_EXAMPLES");
}

TEST_P(TooManyExamples, AreRefusedToLearnAndTheStreamGoesOn) {
  const auto session = std::make_shared<LearnSession>(store_, StreamLimits());
  session->OnReady([] {});
  for (const v1::Example& example : {v1::Example(), Dense(), Kept()})
    EXPECT_OK(session->Accept(Request<v1::LearnStreamRequest>(GetParam(), example), 1));
  EXPECT_OK(session->Accept(Request<v1::LearnStreamRequest>(1, Dense()), 1));
  EXPECT_OK(store_.committer().Commit(*store_.Acquire("models/m")));
  v1::LearnStreamResponse response;
  std::vector<std::string> outcomes;
  while (session->Poll(&response).has_response) {
    for (const v1::LearnResult& result : response.results())
      outcomes.push_back(result.has_error() ? testing::ReasonOf(FromProto(result.error())) : "OK");
  }
  EXPECT_EQ(outcomes, (std::vector<std::string>{"TOO_MANY_EXAMPLES", "TOO_MANY_EXAMPLES",
                                                "TOO_MANY_EXAMPLES", "OK"}));
}

INSTANTIATE_TEST_SUITE_P(Counts, TooManyExamples,
                         ::testing::Values(NestedExamples::kMaxExamples + 1, 100'000, 400'000));

}  // namespace
}  // namespace perceptrond
