// How many locks a message of a session acquires once its stream has converged: a handful, however
// many rows it has.
#include <gtest/gtest.h>

#include <memory>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"

namespace perceptrond::session_locks_test {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kRows = 100;

template <typename Session>
typename Session::Request MakeRequest() {
  typename Session::Request request;
  request.message.set_model("models/m");
  v1::ExampleColumns& columns = *request.message.mutable_columns();
  columns.set_dense_width(2);
  for (int i = 0; i < kRows; ++i) {
    columns.add_values(i % 2 == 0 ? 1 : -1);
    columns.add_values(0.5);
  }
  return request;
}

class SessionLocksTest : public ::testing::Test {
 protected:
  SessionLocksTest() {
    v1::Model settings;
    settings.set_name("models/m");
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    EXPECT_TRUE(store_.Create(settings, "", false).ok());
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
};

// The producer's turn, the gate, the model's state, the ledger, the committer's queue, and the
// session's own lock twice.
TEST_F(SessionLocksTest, AConvergedMessageAcquiresSevenInTheSession) {
  const auto session = std::make_shared<LearnSession>(store_, StreamLimits{1000, 1 << 24});
  session->OnReady([] {});
  auto request = MakeRequest<LearnSession>();
  request.message.mutable_producer()->set_id("p");
  for (int i = 0; i < kRows; ++i)
    request.message.mutable_columns()->add_labels(i % 2 == 0 ? 1 : -1);
  uint64_t locks = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = locks_acquired;
    ASSERT_TRUE(session->Accept(request, request.message.ByteSizeLong()).ok());
    locks = locks_acquired - before;
  }
  EXPECT_LE(locks, 7U);
  ASSERT_TRUE(store_.committer().Commit(store_.Acquire("models/m").value()).ok());
  v1::LearnStreamResponse response;
  ASSERT_TRUE(session->Poll(&response).has_response);
  EXPECT_EQ(response.results(response.results_size() - 1).mistakes(), 0);
}

// The model's state, and the session's own lock.
TEST_F(SessionLocksTest, APredictedMessageAcquiresTwo) {
  PredictSession session(store_, StreamLimits{1000, 1 << 24});
  const auto request = MakeRequest<PredictSession>();
  uint64_t locks = 0;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = locks_acquired;
    ASSERT_TRUE(session.Accept(request, request.message.ByteSizeLong()).ok());
    locks = locks_acquired - before;
  }
  EXPECT_LE(locks, 2U);
}

// A stream that holds its model from message to message notices that it was deleted.
TEST_F(SessionLocksTest, AStreamEndsWhenItsModelIsDeleted) {
  PredictSession session(store_, StreamLimits{1000, 1 << 24});
  const auto request = MakeRequest<PredictSession>();
  ASSERT_TRUE(session.Accept(request, request.message.ByteSizeLong()).ok());
  ASSERT_TRUE(store_.Delete("models/m", "", false).ok());
  EXPECT_TRUE(absl::IsNotFound(session.Accept(request, request.message.ByteSizeLong())));
}

}  // namespace
}  // namespace perceptrond::session_locks_test
