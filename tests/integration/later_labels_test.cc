// Labels that come after their predictions: ids of Predict, in Learn and LearnStream.
// core/store/waiting_predictions_test.cc tests how long predictions are kept.
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

}  // namespace
}  // namespace perceptrond::testing
