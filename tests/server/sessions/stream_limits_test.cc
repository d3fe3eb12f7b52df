// When a stream is read no further: the bound counts what is kept for it, answers as well as
// requests.
#include "server/rpc/backend.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kBigRows = 10'000;

class StreamLimitsTest : public ::testing::Test {
 protected:
  StreamLimitsTest() {
    v1::Model settings;
    settings.set_name("models/m");
    settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
    EXPECT_TRUE(store_.Create(settings, "", false).ok());
  }
  // Rows without features: a byte or two each, answered by a dozen.
  static v1::ExampleColumns EmptyRows() {
    v1::ExampleColumns columns;
    columns.mutable_row_ends()->Resize(kBigRows, 0);
    columns.mutable_labels()->Resize(kBigRows, -1);
    return columns;
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
};

TEST_F(StreamLimitsTest, PredictionsThatNobodyReadsFillTheStreamByTheirSize) {
  StreamLimits limits;
  limits.messages = 1000;
  limits.bytes = 10 * 8 * kBigRows;
  PredictSession session(store_, limits);
  PredictSession::Request predict;
  v1::PredictRequest& request = predict.message;
  request.set_model("models/m");
  *request.mutable_columns() = EmptyRows();
  int taken = 0;
  for (; !session.Poll(nullptr).Full() && taken < 1000; ++taken)
    ASSERT_TRUE(session.Accept(predict, request.ByteSizeLong()).ok());
  EXPECT_LE(taken, 20);
  v1::PredictResponse response;
  while (session.Poll(&response).has_response) --taken;
  EXPECT_EQ(taken, 0);
  EXPECT_FALSE(session.Poll(nullptr).Full());
  EXPECT_TRUE(session.Poll(nullptr).idle);
}

TEST_F(StreamLimitsTest, LearningAnswersThatNobodyReadsFillTheStreamByTheirSize) {
  StreamLimits limits;
  limits.messages = 1000;
  limits.bytes = 10 * 8 * kBigRows;
  const auto session = std::make_shared<LearnSession>(store_, limits);
  session->OnReady([] {});
  LearnSession::Request learn;
  v1::LearnStreamRequest& request = learn.message;
  request.set_model("models/m");
  *request.mutable_columns() = EmptyRows();
  int taken = 0;
  for (; !session->Poll(nullptr).Full() && taken < 1000; ++taken)
    ASSERT_TRUE(session->Accept(learn, request.ByteSizeLong()).ok());
  EXPECT_LE(taken, 20);
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

}  // namespace
}  // namespace perceptrond
