// Predicting and explaining over a real connection: the textbook's numbers, revisions,
// compositions, streams.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

class PredictTest : public ServerTest {
 protected:
  PredictTest() {
    // theta = (1, -1), theta_0 = 1.
    Create("plane",
           "feature_space { dense { dimension: 2 } } "
           "learner { starting_weights { vectors { indices: [0, 1] values: [1, -1] bias: 1 } } }");
  }
  v1::PredictResponse Predict(const std::string& request) {
    return AnswerOf<v1::PredictResponse>("PredictionService/Predict", request);
  }
  v1::ExplainResponse Explain(const std::string& request) {
    return AnswerOf<v1::ExplainResponse>("PredictionService/Explain", request);
  }
  void LearnOne(const std::string& request) {
    EXPECT_EQ(Call("LearningService/Learn", request), "OK");
  }
};

constexpr char kThreePoints[] =
    " examples { dense { values: [1, 3] } } examples { dense { values: [2.5, 1.5] } } "
    "examples { dense { values: [-1.5, 1.5] } } ";

TEST_F(PredictTest, ScoresDistancesAndContributionsAreTheTextbooksAndNothingChanges) {
  const std::string before = Get("plane").SerializeAsString();
  const v1::PredictResponse response = Predict(absl::StrCat("model: 'models/plane'", kThreePoints));
  EXPECT_THAT(response.scores(), ElementsAre(-1, 2, -2));
  EXPECT_THAT(response.predicted_labels(), ElementsAre(-1, 1, -1));
  // Times the labels + + -: margins of -sqrt(2)/2, sqrt(2), sqrt(2).
  EXPECT_NEAR(response.distances(0), -std::sqrt(2) / 2, 1e-6);
  EXPECT_NEAR(response.distances(1), std::sqrt(2), 1e-6);
  EXPECT_NEAR(response.distances(2), -std::sqrt(2), 1e-6);
  const std::string point = "model: 'models/plane' columns { dense_width: 2 values: [1, 3] } ";
  const v1::Explanation all = Explain(point).explanations(0);
  EXPECT_EQ(all.score(), -1);
  EXPECT_EQ(all.label(), -1);
  EXPECT_EQ(all.bias(), 1);
  ASSERT_EQ(all.contributions_size(), 2);
  EXPECT_EQ(all.contributions(0).index(), 1U);
  EXPECT_EQ(all.contributions(0).contribution(), -3);
  EXPECT_EQ(all.contributions(1).contribution(), 1);
  const v1::Explanation largest = Explain(point + "max_features: 1").explanations(0);
  EXPECT_EQ(largest.contributions_size(), 1);
  EXPECT_EQ(largest.other_contributions(), 1);
  EXPECT_EQ(largest.other_features(), 1U);
  EXPECT_EQ(Get("plane").SerializeAsString(), before);
  // Learning moves the boundary as in the textbook; the theorem does not hold from given weights.
  LearnOne("model: 'models/plane' examples { dense { values: [1, 3] } label: 1 }");
  const v1::Model model = Get("plane");
  EXPECT_THAT(model.weights().vectors(0).values(), ElementsAre(2, 2));
  EXPECT_EQ(model.weights().vectors(0).bias(), 2);
  EXPECT_FALSE(model.report().has_margin_ceiling());
}

TEST_F(PredictTest, ExplanationsNameFeaturesAndTheAgeThatAnAverageDependsOn) {
  Create("words", "feature_space { named {} } learner { averaged {} }");
  for (int i = 0; i < 3; ++i)
    LearnOne("model: 'models/words' examples { named { names: 'win' } label: 1 }");
  const v1::ExplainResponse response =
      Explain("model: 'models/words' examples { named { names: 'win' } }");
  EXPECT_EQ(response.age(), 3U);
  EXPECT_EQ(response.explanations(0).contributions(0).name(), "win");
}

TEST_F(PredictTest, AnswersOfACompositionNameTheRevisionsOfItsComponents) {
  CreateDense("other", 2);
  const std::string row = "examples { sparse { indices: 0 values: 1 } label: 1 }";
  LearnOne("model: 'models/other' " + row);
  Create("both",
         "feature_space { composition { inputs { model: 'models/other' } "
         "inputs { model: 'models/plane' } } }");
  EXPECT_THAT(Predict("model: 'models/plane' " + row).component_revisions(), ElementsAre());
  const std::string request = "model: 'models/both' " + row;
  EXPECT_THAT(Predict(request).component_revisions(), ElementsAre(1, 0));
  EXPECT_THAT(Explain(request).component_revisions(), ElementsAre(1, 0));
  EXPECT_THAT(
      AnswerOf<v1::LearnResponse>("LearningService/Learn", request).result().component_revisions(),
      ElementsAre(1, 0));
  RawLearnStream stream(*learning_, "both");
  stream.Open();
  EXPECT_THAT(stream.Ask(row).component_revisions(), ElementsAre(1, 0));
  EXPECT_TRUE(stream.Finish().ok());
  // It takes the examples of its components, whatever their number.
  EXPECT_EQ(Call("PredictionService/Predict",
                 "model: 'models/both' examples { dense { values: [1, 2, 3] } }"),
            "INVALID_ARGUMENT WRONG_DIMENSION examples[0].dense.values");
}

TEST_F(PredictTest, AStreamAnswersEachMessageInOrderAndBadOnesInBand) {
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  for (const std::string& message :
       {absl::StrCat("model: 'models/plane'", kThreePoints),
        absl::StrCat("examples { dense { values: [nan, 0] } }", kThreePoints),
        absl::StrCat("columns { row_ends: 0 }", kThreePoints)})
    ASSERT_TRUE(stream->Write(FromText<v1::PredictRequest>(message)));
  stream->WritesDone();
  v1::PredictResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.predicted_labels(), ElementsAre(-1, 1, -1));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.predicted_labels(), ElementsAre(0, -1, 1, -1));
  EXPECT_EQ(Outcome(response), "0: INVALID_ARGUMENT NON_FINITE_VALUE examples[0].dense.values[0]");
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(Reason(response.error()), "BOTH_FORMS");
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
