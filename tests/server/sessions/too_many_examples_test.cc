// A message with more examples than it may hold is refused by whatever reads examples, however many
// there are; none of them is looked at.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/rpc/message.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"
#include "tests/support/models.h"
#include "tests/support/status.h"

namespace perceptrond::too_many_examples_test {
namespace {

namespace v1 = ::perceptron::v1;

// Each of the message's `count` examples is `example`.
template <typename Message>
RequestWithExamples<Message> Request(size_t count, const v1::Example& example) {
  Message message;
  message.set_model("models/m");
  for (size_t i = 0; i < count; ++i) *message.add_examples() = example;
  const std::string bytes = message.SerializeAsString();
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer buffer(&slice, 1);
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

class TooManyExamples : public ::testing::TestWithParam<size_t> {
 protected:
  TooManyExamples() {
    EXPECT_OK(store_.Create(testing::DenseSettings("models/m", 1), "", false).status());
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
};

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
}  // namespace perceptrond::too_many_examples_test
