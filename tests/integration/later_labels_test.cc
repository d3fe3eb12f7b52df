// Labels that come after their predictions: ids of Predict, in Learn and LearnStream.
// core/store/waiting_predictions_test.cc tests how long predictions are kept.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::IsEmpty;

class LaterLabelsTest : public ServerTest {
 protected:
  void CreateKeeping(const std::string& id, const std::string& settings) {
    Create(id, settings + " stored_predictions { durable: true }");
  }
  std::vector<std::string> Ids(const std::string& id, const std::string& rows) {
    const auto response = AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict",
        absl::StrCat("model: 'models/", id, "' include_prediction_ids: true ", rows));
    return {response.prediction_ids().begin(), response.prediction_ids().end()};
  }
  std::vector<std::string> TwoMails(const std::string& id) {
    return Ids(id,
               "examples { named { names: ['free', 'now'] values: [2, 1] } } "
               "examples { named { names: 'lunch' } }");
  }
  static std::string Label(const std::string& id, int label) {
    return absl::StrCat(" examples { prediction_id: '", id, "' label: ", label, " }");
  }
  std::string Learn(const std::string& id, const std::string& examples,
                    v1::LearnResponse* response = nullptr) {
    return Call("LearningService/Learn", absl::StrCat("model: 'models/", id, "' ", examples),
                response);
  }
};

TEST_F(LaterLabelsTest, ALabelByIdIsTheExampleInEveryForm) {
  const struct {
    const char* space;
    const char* rows;
    const char* labels;
  } cases[] = {
      {"dense { dimension: 3 }", "columns { dense_width: 3 values: [1, 0, 2, -1, 0.5, 0] }",
       "columns { labels: [1, -1] }"},
      // No features: the bias alone.
      {"dense { dimension: 3 }",
       "examples { sparse { indices: [0, 2] values: [2, 1] } } "
       "examples { sparse { indices: 1 values: -1 } } examples {}",
       ""},
      {"hashed { bits: 8 }",
       "examples { named { names: ['a', 'b'] values: [1, 3] } } "
       "examples { named { names: 'b' values: -1 } } examples {}",
       ""},
      {"hashed { bits: 8 }", "columns { row_ends: [2, 3] indices: [4, 7, 1] }",
       "columns { labels: [1, -1] }"},
      {"text {}", "columns { texts: ['WIN a prize!', ''] }", "columns { labels: [1, -1] }"},
  };
  int i = 0;
  for (const auto& one : cases) {
    SCOPED_TRACE(one.rows);
    const std::string later = absl::StrCat("later", i);
    const std::string once = absl::StrCat("once", i++);
    for (const std::string& id : {later, once})
      CreateKeeping(id, absl::StrCat("feature_space { ", one.space, " }"));
    auto at_once = FromText<v1::LearnRequest>(one.rows);
    at_once.mutable_columns()->MergeFrom(FromText<v1::LearnRequest>(one.labels).columns());
    if (one.labels[0] == '\0') at_once.clear_columns();
    std::string labels;
    const std::vector<std::string> ids = Ids(later, one.rows);
    for (size_t row = 0; row < ids.size(); ++row) {
      const int label = row % 2 == 0 ? 1 : -1;
      labels += Label(ids[row], label);
      if (at_once.examples_size() > 0)
        at_once.mutable_examples(static_cast<int>(row))->set_label(label);
    }
    v1::LearnResponse by_id;
    v1::LearnResponse with_features;
    EXPECT_EQ(Learn(later, labels, &by_id), "OK");
    EXPECT_EQ(Learn(once, at_once.ShortDebugString(), &with_features), "OK");
    EXPECT_GT(by_id.result().updates(), 0U);
    EXPECT_EQ(by_id.SerializeAsString(), with_features.SerializeAsString());
    EXPECT_EQ(Get(later).weights().SerializeAsString(), Get(once).weights().SerializeAsString());
  }
}

TEST_F(LaterLabelsTest, AnIdIsLearnedOnceAlsoAcrossAKill) {
  CreateKeeping("m", "feature_space { named {} }");
  CreateKeeping("other", "feature_space { named {} }");
  const std::vector<std::string> ids = TwoMails("m");
  EXPECT_EQ(Learn("other", Label(ids[0], 1)),
            "INVALID_ARGUMENT UNKNOWN_PREDICTION examples[0].prediction_id");
  // Ids and features may be mixed.
  EXPECT_EQ(Learn("m", "examples { named { names: 'sale' } label: 1 } " + Label(ids[0], 1)), "OK");
  server_.Kill();
  Restart();
  // A refused call does not use up its ids.
  EXPECT_EQ(Learn("m", Label(ids[1], -1) + Label(ids[0], 1)),
            "INVALID_ARGUMENT UNKNOWN_PREDICTION examples[1].prediction_id");
  EXPECT_EQ(Learn("m", Label(ids[1], -1)), "OK");
  EXPECT_EQ(Get("m").report().examples(), 3U);
}

TEST_F(LaterLabelsTest, OnAStreamARowErrorLeavesThePredictionWaitingAndAReplayIsADuplicate) {
  CreateKeeping("m", "feature_space { named {} }");
  const std::vector<std::string> ids = TwoMails("m");
  const std::string message = absl::StrCat("first_offset: 0 columns { prediction_ids: ['", ids[0],
                                           "', '0.0.0.0', '", ids[1], "'] labels: [1, 1, 7] }");
  for (const bool again : {false, true}) {
    RawLearnStream stream(*learning_, "m", "p");
    EXPECT_EQ(stream.Open().next_offset(), again ? 4 : 0);
    const v1::LearnResult result = stream.Ask(message);
    if (again) {
      EXPECT_EQ(result.duplicates(), 3U);
      EXPECT_EQ(Outcome(result), "OK");
      EXPECT_EQ(AnswerOf<v1::LearnResponse>("LearningService/Learn",
                                            "model: 'models/m' producer_id: 'p' " + message)
                    .result()
                    .duplicates(),
                3U);
      continue;
    }
    EXPECT_EQ(result.examples(), 1U);
    EXPECT_EQ(Outcome(result),
              "1: INVALID_ARGUMENT UNKNOWN_PREDICTION columns.prediction_ids[1]; "
              "2: INVALID_ARGUMENT UNKNOWN_LABEL columns.labels[2]");
    EXPECT_EQ(stream.Ask(Label(ids[1], -1)).acknowledged_offset(), 3);
    EXPECT_TRUE(stream.Finish().ok());
  }
}

TEST_F(LaterLabelsTest, ARefusedCallKeepsNothing) {
  Create("small", "feature_space { named {} } stored_predictions { max_bytes: 600 }");
  const std::vector<std::string> ids = TwoMails("small");
  std::string refused = "model: 'models/small' include_prediction_ids: true ";
  for (int i = 0; i < 10; ++i) refused += "examples { named { names: 'a' } } ";
  EXPECT_EQ(Call("PredictionService/Predict", refused + "examples { sparse { indices: 0 } }"),
            "INVALID_ARGUMENT WRONG_FORM examples[10].sparse");
  EXPECT_EQ(Learn("small", Label(ids[0], 1) + Label(ids[1], 1)), "OK");
  // A stream answers with ids but for rows with errors.
  v1::PredictResponse response;
  EXPECT_EQ(Call("PredictionService/PredictStream",
                 "model: 'models/small' include_prediction_ids: true examples { named { names: 'a' "
                 "} } examples { sparse { indices: 0 } }",
                 &response),
            "OK");
  ASSERT_EQ(response.prediction_ids_size(), 2);
  EXPECT_NE(response.prediction_ids(0), "");
  EXPECT_THAT(response.prediction_ids(1), IsEmpty());
}

constexpr int kRounds = 4;
constexpr int kPredictions = 3000;
constexpr int kMessage = 10;

// The server is killed while labels of durable predictions are learned, by a stream and by calls at once. Then all of them are sent
// again by another producer: each must have been learned once, and those that were acknowledged before the kill.
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
