// The server is killed with SIGKILL while labels of durable predictions are learned, by a stream and
// by calls at once. Then all of them are sent again by another producer: each must have been learned
// once, and those that were acknowledged before the kill.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kRounds = 4;
constexpr int kPredictions = 3000;
constexpr int kMessage = 10;

class LaterLabelsCrash : public ServerTest {
 protected:
  // Rows 0, 2, 4, ... have a feature of their own: whatever their label, the first time it is an
  // update. The others have one in common, and are right but for the first of them.
  static bool HasOwn(int i) { return i % 2 == 0; }
  static std::string Own(int i) { return "own" + std::to_string(i); }

  void CreateModel(const std::string& id) {
    // Without a bias the rows share nothing.
    Create(id,
           "feature_space { named { max_features: 6000 } } learner { bias_input: 0 } "
           "stored_predictions { durable: true }");
    v1::PredictRequest request;
    request.set_model("models/" + id);
    request.set_include_prediction_ids(true);
    for (int i = 0; i < kPredictions; ++i)
      request.add_examples()->mutable_named()->add_names(HasOwn(i) ? Own(i) : "common");
    v1::PredictResponse response;
    ASSERT_TRUE(Predict(request, &response).ok());
    ids_.assign(response.prediction_ids().begin(), response.prediction_ids().end());
    ASSERT_EQ(ids_.size(), static_cast<size_t>(kPredictions));
  }
  // The labels of rows `begin` to `begin` + kMessage - 1, of those with a feature of their own `own`.
  v1::ExampleColumns Labels(int begin, int own) const {
    v1::ExampleColumns columns;
    for (int i = begin; i < begin + kMessage; ++i) {
      columns.add_prediction_ids(ids_[static_cast<size_t>(i)]);
      columns.add_labels(HasOwn(i) ? own : 1);
    }
    return columns;
  }
  // Adds the rows of a message.
  static void Add(int begin, std::set<int>& rows) {
    for (int i = begin; i < begin + kMessage; ++i) rows.insert(i);
  }
  // Learns the first half on a stream and the other by calls, until the server is killed, once
  // `messages` of the stream were acknowledged. Returns the rows that were.
  std::set<int> LearnUntilKilled(const std::string& id, int64_t messages) {
    std::set<int> by_calls;
    std::thread calls([&] {
      for (int i = kPredictions / 2; i < kPredictions; i += kMessage) {
        v1::LearnRequest request;
        request.set_model("models/" + id);
        *request.mutable_columns() = Labels(i, 1);
        if (!Learn(request).ok()) return;
        Add(i, by_calls);
      }
    });
    std::set<int> acknowledged;
    RawLearnStream stream(*learning_, id, "first");
    stream.Open();
    for (int i = 0; i < kPredictions / 2; i += kMessage) {
      v1::LearnStreamRequest message;
      *message.mutable_columns() = Labels(i, 1);
      stream.Send(message);
    }
    bool alive = true;
    while (stream.Read()) {
      for (const v1::LearnResult& result : stream.answer().results())
        Add(static_cast<int>(result.message_number() - 1) * kMessage, acknowledged);
      if (!alive || acknowledged.size() < static_cast<size_t>(messages * kMessage)) continue;
      server_.Kill();
      alive = false;
    }
    EXPECT_FALSE(alive) << "it ended before it was killed";
    stream.Finish();
    calls.join();
    acknowledged.merge(by_calls);
    return acknowledged;
  }
  // Sends all again, with the other label where it shows. Returns the rows whose ids were unknown.
  std::set<int> LearnAgain(const std::string& id) {
    std::set<int> unknown;
    RawLearnStream stream(*learning_, id, "second");
    stream.Open();
    for (int i = 0; i < kPredictions; i += kMessage) {
      v1::LearnStreamRequest message;
      *message.mutable_columns() = Labels(i, -1);
      const v1::LearnResult result = stream.Ask(message);
      for (const v1::RowError& error : result.row_errors()) {
        EXPECT_EQ(Reason(error.status()), "UNKNOWN_PREDICTION");
        unknown.insert(i + static_cast<int>(error.row()));
      }
    }
    EXPECT_TRUE(stream.Finish().ok());
    return unknown;
  }

  std::vector<std::string> ids_;
};

TEST_F(LaterLabelsCrash, EachIsLearnedOnceAndNoneAgainThatWasAcknowledged) {
  std::mt19937 random(7);
  for (int round = 0; round < kRounds; ++round) {
    const std::string id = "m" + std::to_string(round);
    ASSERT_NO_FATAL_FAILURE(CreateModel(id));
    const std::set<int> acknowledged = LearnUntilKilled(id, 1 + random() % 100);
    Restart();
    const uint64_t before = Get(id).report().examples();
    const std::set<int> unknown = LearnAgain(id);
    EXPECT_TRUE(
        std::includes(unknown.begin(), unknown.end(), acknowledged.begin(), acknowledged.end()))
        << "an acknowledged row is learned again";
    EXPECT_EQ(unknown.size(), before) << "an id is unknown if, and only if, its row was counted";
    const v1::Model model = Get(id);
    EXPECT_EQ(model.report().examples(), static_cast<uint64_t>(kPredictions));
    const v1::WeightVector& weights = model.weights().vectors(0);
    std::map<std::string, float> by_name;
    for (int i = 0; i < weights.names_size(); ++i) by_name[weights.names(i)] = weights.values(i);
    // Twice, with both labels, would be 0.
    for (int i = 0; i < kPredictions; i += 2)
      EXPECT_EQ(by_name[Own(i)], unknown.contains(i) ? 1 : -1) << i;
  }
}

}  // namespace
}  // namespace perceptrond::testing
