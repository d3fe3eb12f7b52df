// Several classes over a real connection: classes are added mid-stream, the server is killed, and
// they are there again.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

using ClassesTest = ServerTest;

TEST_F(ClassesTest, ClassesComeUpMidStreamAndSurviveAKill) {
  Create("topics",
         "feature_space { named {} } "
         "learner { classes { max_classes: 3 new_classes: NEW_CLASSES_NAMED } }");
  // Rows of one feature each, called as their label; the names of labels are in another order.
  {
    RawLearnStream stream(*learning_, "topics", "p");
    stream.Open();
    const v1::LearnResult first = stream.Ask(
        "columns { feature_names { text: 'rumtea' lengths: [3, 3] } indices: [1, 1, 0] "
        "row_ends: [1, 2, 3] label_names: ['tea', 'rum'] labels: [0, 0, 1] }");
    EXPECT_THAT(first.predicted_labels(), ElementsAre(-1, 0, 0));
    EXPECT_EQ(first.margins_size(), 3);
    EXPECT_EQ(first.scores_size(), 0);
    EXPECT_THAT(first.updated_rows(), ElementsAre(0, 2));
    EXPECT_EQ(stream
                  .Ask("examples { named { names: 'ale' } label_name: 'ale' } "
                       "examples { named { names: 'tea' } label_name: 'tea' } "
                       "examples { named { names: 'rum' } label_name: 'rum' }")
                  .mistakes(),
              2U);
  }
  const v1::Model before = Get("topics");
  EXPECT_THAT(before.label_names(), ElementsAre("tea", "rum", "ale"));
  ASSERT_EQ(before.weights().vectors_size(), 3);
  const std::string predict =
      "model: 'models/topics' include_class_scores: true examples { named { names: 'tea' } } "
      "examples { named { names: 'rum' } } examples { named { names: 'ale' } }";
  const auto answers = AnswerOf<v1::PredictResponse>("PredictionService/Predict", predict);
  EXPECT_THAT(answers.predicted_labels(), ElementsAre(0, 1, 2));
  EXPECT_EQ(answers.class_scores_size(), 9);
  server_.Kill();
  Restart();
  const v1::Model after = Get("topics");
  EXPECT_THAT(after.label_names(), ElementsAre("tea", "rum", "ale"));
  EXPECT_EQ(after.revision(), before.revision());
  EXPECT_EQ(after.weights().SerializeAsString(), before.weights().SerializeAsString());
  EXPECT_EQ(AnswerOf<v1::PredictResponse>("PredictionService/Predict", predict).SerializeAsString(),
            answers.SerializeAsString());
  // The producer goes on where it was, and a class too many is refused alone.
  RawLearnStream stream(*learning_, "topics", "p");
  EXPECT_EQ(stream.Open().next_offset(), 6);
  const v1::LearnResult more = stream.Ask(
      "examples { named { names: 'gin' } label_name: 'gin' } "
      "examples { named { names: 'tea' } label_name: 'tea' }");
  EXPECT_EQ(Outcome(more), "0: RESOURCE_EXHAUSTED CLASS_CAP");
  EXPECT_EQ(more.examples(), 1U);
}

}  // namespace
}  // namespace perceptrond::testing
