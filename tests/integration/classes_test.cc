// Several classes over a real connection: classes are added mid-stream, the server is killed, and
// they are there again.
#include <algorithm>
#include <cmath>

#include "tests/integration/fixture.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClassesTest : public ServerTest {
 protected:
  // Rows of one feature each, called as their label.
  static v1::LearnStreamRequest Columns(const std::vector<std::string>& labels) {
    v1::LearnStreamRequest request;
    v1::ExampleColumns& columns = *request.mutable_columns();
    std::vector<std::string> names = labels;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const std::string& name : names)
      name_columns::AppendName(name, *columns.mutable_feature_names());
    // In another order than the features'.
    for (size_t i = names.size(); i-- > 0;) columns.add_label_names(names[i]);
    for (const std::string& label : labels) {
      const auto at = static_cast<uint32_t>(std::lower_bound(names.begin(), names.end(), label) -
                                            names.begin());
      columns.add_indices(at);
      columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
      columns.add_labels(static_cast<int32_t>(names.size() - 1 - at));
    }
    return request;
  }
  v1::PredictResponse PredictNames(const std::string& id, const std::vector<std::string>& names,
                                   bool include_class_scores = false) {
    std::string request = "model: 'models/" + id + "' ";
    if (include_class_scores) request += "include_class_scores: true ";
    for (const std::string& name : names)
      request += "examples { named { names: '" + name + "' } } ";
    return AnswerOf<v1::PredictResponse>("PredictionService/Predict", request);
  }
};

TEST_F(ClassesTest, ClassesComeUpMidStreamAndSurviveAKill) {
  Create("topics",
         "feature_space { named {} } "
         "learner { classes { max_classes: 3 new_classes: NEW_CLASSES_NAMED } }");
  {
    RawLearnStream stream(*learning_, "topics", "p");
    stream.Open();
    const v1::LearnResult first = stream.Ask(Columns({"tea", "tea", "rum"}));
    EXPECT_THAT(first.predicted_labels(), ElementsAre(-1, 0, 0));
    EXPECT_THAT(first.margins(), SizeIs(3));
    EXPECT_THAT(first.scores(), IsEmpty());
    EXPECT_THAT(first.updated_rows(), ElementsAre(0, 2));
    EXPECT_THAT(Get("topics").label_names(), ElementsAre("tea", "rum"));
    const v1::LearnResult second = stream.Ask(Columns({"ale", "tea", "rum"}));
    EXPECT_EQ(second.mistakes(), 2U);
    EXPECT_THAT(Get("topics").label_names(), ElementsAre("tea", "rum", "ale"));
  }
  const v1::Model before = Get("topics");
  const v1::PredictResponse answers = PredictNames("topics", {"tea", "rum", "ale"}, true);
  EXPECT_THAT(answers.predicted_labels(), ElementsAre(0, 1, 2));
  EXPECT_EQ(answers.class_scores_size(), 9);
  server_.Kill();
  Restart();
  const v1::Model after = Get("topics");
  EXPECT_THAT(after.label_names(), ElementsAre("tea", "rum", "ale"));
  EXPECT_EQ(after.revision(), before.revision());
  ASSERT_EQ(after.weights().vectors_size(), 3);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(after.weights().vectors(k).SerializeAsString(),
              before.weights().vectors(k).SerializeAsString());
  }
  EXPECT_EQ(PredictNames("topics", {"tea", "rum", "ale"}, true).SerializeAsString(),
            answers.SerializeAsString());
  // The producer goes on where it was, and a class too many is refused alone.
  RawLearnStream stream(*learning_, "topics", "p");
  EXPECT_EQ(stream.Open().next_offset(), 6);
  const v1::LearnResult third = stream.Ask(Columns({"gin", "tea"}));
  EXPECT_EQ(Outcome(third), "0: RESOURCE_EXHAUSTED CLASS_CAP");
  EXPECT_EQ(third.examples(), 1U);
}

TEST_F(ClassesTest, ProbabilitiesOfAllClassesAreThereOnRequest) {
  Create("soft",
         "feature_space { named {} } learner { logistic_regression {} "
         "classes { max_classes: 5 new_classes: NEW_CLASSES_NUMBERED } }");
  EXPECT_EQ(Call("LearningService/Learn",
                 "model: 'models/soft' examples { named { names: 'f3' } label: 3 } "
                 "examples { named { names: 'f1' } label: 1 } "
                 "examples { named { names: 'f3' } label: 3 }"),
            "OK");
  const v1::PredictResponse brief = PredictNames("soft", {"f1"});
  EXPECT_EQ(brief.class_scores_size(), 0);
  const v1::PredictResponse all = PredictNames("soft", {"f1", "f3"}, true);
  EXPECT_THAT(all.predicted_labels(), ElementsAre(1, 3));
  ASSERT_EQ(all.class_probabilities_size(), 8);
  EXPECT_TRUE(std::isnan(all.class_probabilities(0)));
  EXPECT_NEAR(all.class_probabilities(1) + all.class_probabilities(3), 1, 1e-6);
  EXPECT_EQ(all.class_probabilities(1), brief.probabilities(0));
  EXPECT_EQ(Get("soft").weights().vectors_size(), 4);
}

}  // namespace
}  // namespace perceptrond::testing
