// Predicting and explaining over a real connection. core/learner/worked_examples_test.cc has the textbook's numbers, and
// core/model/explain_test.cc every rule.
#include <cmath>

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
};

TEST_F(PredictTest, AnAnswerHasTheScoresDistancesAndContributionsOfItsRows) {
  const std::string point = "model: 'models/plane' columns { dense_width: 2 values: [1, 3] } ";
  const v1::PredictResponse response = Predict(point);
  EXPECT_THAT(response.scores(), ElementsAre(-1));
  EXPECT_THAT(response.predicted_labels(), ElementsAre(-1));
  EXPECT_NEAR(response.distances(0), -std::sqrt(2) / 2, 1e-6);
  const v1::Explanation largest = Explain(point + "max_features: 1").explanations(0);
  EXPECT_EQ(largest.score(), -1);
  EXPECT_EQ(largest.label(), -1);
  EXPECT_EQ(largest.bias(), 1);
  ASSERT_EQ(largest.contributions_size(), 1);
  EXPECT_EQ(largest.contributions(0).index(), 1U);
  EXPECT_EQ(largest.contributions(0).contribution(), -3);
  EXPECT_EQ(largest.other_contributions(), 1);
  EXPECT_EQ(largest.other_features(), 1U);
  Teach("plane", "examples { dense { values: [1, 3] } label: 1 }");
  EXPECT_FALSE(Get("plane").report().has_margin_ceiling())
      << "the theorem does not hold from given weights";
  // An average depends on its age.
  Create("words", "feature_space { named {} } learner { averaged {} }");
  for (int i = 0; i < 3; ++i) Teach("words", "examples { named { names: 'win' } label: 1 }");
  const v1::ExplainResponse explained =
      Explain("model: 'models/words' examples { named { names: 'win' } }");
  EXPECT_EQ(explained.age(), 3U);
  EXPECT_EQ(explained.explanations(0).contributions(0).name(), "win");
}

TEST_F(PredictTest, AnswersOfACompositionNameTheRevisionsOfItsComponents) {
  CreateDense("other", 2);
  const std::string row = "examples { sparse { indices: 0 values: 1 } label: 1 }";
  Teach("other", row);
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

}  // namespace
}  // namespace perceptrond::testing
