// Several classes over a real connection: classes are added mid-stream, the server is killed, and
// they are there again; labels by number and by name, in both forms of examples.
#include <algorithm>
#include <cmath>

#include "tests/integration/fixture.h"
#include "tests/support/learners.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClassesTest : public ServerTest {
 protected:
  v1::Model CreateClasses(const std::string& id, v1::Classes::NewClasses new_classes,
                          uint32_t max_classes = 3, const std::string& kind = "perceptron") {
    v1::Model model;
    model.mutable_feature_space()->mutable_named();
    testing::SetLearner(*model.mutable_learner(), kind);
    model.mutable_learner()->mutable_classes()->set_max_classes(max_classes);
    model.mutable_learner()->mutable_classes()->set_new_classes(new_classes);
    return Create(id, model);
  }
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
    v1::PredictRequest request;
    request.set_model("models/" + id);
    request.set_include_class_scores(include_class_scores);
    for (const std::string& name : names) request.add_examples()->mutable_named()->add_names(name);
    v1::PredictResponse response;
    const grpc::Status status = Predict(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
};

TEST_F(ClassesTest, ClassesComeUpMidStreamAndSurviveAKill) {
  CreateClasses("topics", v1::Classes::NEW_CLASSES_NAMED);
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
  ASSERT_EQ(third.row_errors_size(), 1);
  EXPECT_EQ(third.row_errors(0).status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(third.row_errors(0).status()), "CLASS_CAP");
  EXPECT_EQ(third.examples(), 1U);
}

TEST_F(ClassesTest, NestedExamplesTakeLabelsByNumberOrByNameButNotBothInAMessage) {
  v1::Model model;
  model.mutable_feature_space()->mutable_named();
  model.mutable_learner()->mutable_classes()->set_max_classes(3);
  for (const char* name : {"tea", "rum", "ale"}) model.add_label_names(name);
  Create("drinks", model);
  RawLearnStream stream(*learning_, "drinks");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = NamedExample("rum", {{"dark", 1}});
  *request.add_examples() = NamedExample("wine", {{"dark", 1}});
  v1::Example& numbered = *request.add_examples();
  numbered.mutable_named()->add_names("hot");
  numbered.set_label(0);
  const v1::LearnResult result = stream.Ask(request);
  EXPECT_EQ(result.examples(), 1U);
  ASSERT_EQ(result.row_errors_size(), 2);
  EXPECT_EQ(Reason(result.row_errors(0).status()), "UNKNOWN_LABEL");
  EXPECT_EQ(BadField(result.row_errors(0).status()), "examples[1].label_name");
  EXPECT_EQ(Reason(result.row_errors(1).status()), "WRONG_FORM");
  EXPECT_EQ(BadField(result.row_errors(1).status()), "examples[2].label");
  v1::LearnStreamRequest numbers;
  *numbers.add_examples() = numbered;
  v1::Example& unknown = *numbers.add_examples();
  unknown.set_label(3);
  const v1::LearnResult then = stream.Ask(numbers);
  EXPECT_EQ(then.examples(), 1U);
  ASSERT_EQ(then.row_errors_size(), 1);
  EXPECT_EQ(BadField(then.row_errors(0).status()), "examples[1].label");
  EXPECT_THAT(PredictNames("drinks", {"dark", "hot"}).predicted_labels(), ElementsAre(1, 0));
}

TEST_F(ClassesTest, ProbabilitiesOfAllClassesAreThereOnRequest) {
  CreateClasses("soft", v1::Classes::NEW_CLASSES_NUMBERED, 5, "logistic-regression");
  v1::LearnRequest request;
  request.set_model("models/soft");
  for (const int label : {3, 1, 3}) {
    v1::Example& example = *request.add_examples();
    example.mutable_named()->add_names("f" + std::to_string(label));
    example.set_label(label);
  }
  ASSERT_TRUE(Learn(request).ok());
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
