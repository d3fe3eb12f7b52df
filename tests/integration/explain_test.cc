// Explain and the curves over a real connection.
#include <cmath>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ExplainTest : public ServerTest {
 protected:
  ExplainTest() {
    // theta = (1, -1), theta_0 = 1.
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::WeightVector& start =
        *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
    start.add_indices(0);
    start.add_indices(1);
    start.add_values(1);
    start.add_values(-1);
    start.set_bias(1);
    Create("plane", settings);
  }
  static v1::ExplainRequest Request(std::initializer_list<float> values) {
    v1::ExplainRequest request;
    request.set_model("models/plane");
    for (const float value : values) request.mutable_columns()->add_values(value);
    request.mutable_columns()->set_dense_width(2);
    return request;
  }
  grpc::Status Explain(const v1::ExplainRequest& request, v1::ExplainResponse* response) {
    grpc::ClientContext context;
    return predictions_->Explain(&context, request, response);
  }
  grpc::Status StatusOf(const v1::ExplainRequest& request) {
    v1::ExplainResponse response;
    return Explain(request, &response);
  }
};

TEST_F(ExplainTest, TheTextbooksScoreIsTakenApart) {
  v1::ExplainResponse response;
  ASSERT_TRUE(Explain(Request({1, 3}), &response).ok());
  ASSERT_EQ(response.explanations_size(), 1);
  const v1::Explanation& explanation = response.explanations(0);
  EXPECT_EQ(explanation.score(), -1);
  EXPECT_EQ(explanation.label(), -1);
  EXPECT_EQ(explanation.bias(), 1);
  ASSERT_EQ(explanation.contributions_size(), 2);
  EXPECT_EQ(explanation.contributions(0).index(), 1U);
  EXPECT_EQ(explanation.contributions(0).contribution(), -3);
  EXPECT_EQ(explanation.contributions(1).contribution(), 1);
  EXPECT_EQ(response.revision(), 0);
}

TEST_F(ExplainTest, NestedExamplesByNameAreExplainedByName) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  Create("words", settings);
  v1::LearnRequest learn;
  learn.set_model("models/words");
  *learn.add_examples() = NamedExample("", {{"prize", 1}, {"win", 2}});
  learn.mutable_examples(0)->set_label(1);
  ASSERT_TRUE(Learn(learn).ok());
  v1::ExplainRequest request;
  request.set_model("models/words");
  *request.add_examples() = NamedExample("", {{"prize", 1}, {"win", 3}});
  v1::ExplainResponse response;
  ASSERT_TRUE(Explain(request, &response).ok());
  EXPECT_EQ(response.revision(), 1);
  EXPECT_EQ(response.explanations(0).contributions(0).name(), "win");
  EXPECT_EQ(response.explanations(0).contributions(0).contribution(), 6);
  EXPECT_EQ(response.explanations(0).contributions(1).name(), "prize");
}

TEST_F(ExplainTest, AnAverageIsExplainedWithTheAgeThatItDependsOn) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  Create("plain", settings);
  settings.mutable_learner()->mutable_averaged();
  Create("averaged", settings);
  for (const auto& [model, age] : {std::pair{"models/plain", 0U}, {"models/averaged", 3U}}) {
    v1::LearnRequest learn;
    learn.set_model(model);
    for (int i = 0; i < 3; ++i) *learn.add_examples() = SparseExample(1, {{0, 1}});
    ASSERT_TRUE(Learn(learn).ok());
    v1::ExplainRequest request = Request({1, 3});
    request.set_model(model);
    v1::ExplainResponse response;
    ASSERT_TRUE(Explain(request, &response).ok());
    EXPECT_EQ(response.age(), age);
  }
}

TEST_F(ExplainTest, WhatIsNotListedIsSummedUp) {
  v1::ExplainRequest request = Request({1, 3});
  request.set_max_features(1);
  v1::ExplainResponse response;
  ASSERT_TRUE(Explain(request, &response).ok());
  EXPECT_EQ(response.explanations(0).contributions_size(), 1);
  EXPECT_EQ(response.explanations(0).other_contributions(), 1);
  EXPECT_EQ(response.explanations(0).other_features(), 1U);
}

TEST_F(ExplainTest, EachErrorHasItsCodeItsReasonAndItsField) {
  v1::ExplainRequest request = Request({1, 3});
  request.set_max_features(-1);
  EXPECT_EQ(StatusOf(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadField(StatusOf(request)), "max_features");
  request.set_max_features(10'001);
  EXPECT_EQ(Reason(StatusOf(request)), "INVALID_FIELD");
  request = Request({1, 3});
  request.set_min_revision(1);
  EXPECT_EQ(StatusOf(request).error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(StatusOf(request)), "REVISION_TOO_OLD");
  request = Request({1, NAN});
  EXPECT_EQ(Reason(StatusOf(request)), "NON_FINITE_VALUE");
  EXPECT_EQ(BadField(StatusOf(request)), "columns.values[1]");
  request = Request({});
  for (int i = 0; i < 202; ++i) request.mutable_columns()->add_values(1);
  EXPECT_EQ(Reason(StatusOf(request)), "TOO_MANY_EXAMPLES");
  request.mutable_columns()->mutable_values()->Truncate(200);
  EXPECT_TRUE(StatusOf(request).ok());
  request = Request({1, 3});
  request.set_model("models/nobody");
  EXPECT_EQ(Reason(StatusOf(request)), "MODEL_NOT_FOUND");
  request.set_model("");
  EXPECT_EQ(BadField(StatusOf(request)), "model");
}

TEST_F(ExplainTest, AModelWithoutAClassHasNoScoreToExplain) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  v1::Classes& classes = *settings.mutable_learner()->mutable_classes();
  classes.set_max_classes(3);
  classes.set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
  Create("classes", settings);
  v1::ExplainRequest request = Request({1, 3});
  request.set_model("models/classes");
  EXPECT_EQ(StatusOf(request).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(StatusOf(request)), "NO_CLASS");
  v1::LearnRequest learn;
  learn.set_model("models/classes");
  *learn.add_examples() = SparseExample(2, {{0, 1}});
  ASSERT_TRUE(Learn(learn).ok());
  EXPECT_TRUE(StatusOf(request).ok());
}

TEST_F(ExplainTest, ExplainingChangesNothing) {
  const std::string before = Get("plane").SerializeAsString();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(StatusOf(Request({1, 3})).ok());
  EXPECT_EQ(Get("plane").SerializeAsString(), before);
}

v1::LearnRequest Contradictions(int examples) {
  v1::LearnRequest learn;
  learn.set_model("models/line");
  learn.set_producer_id("p");
  learn.set_first_offset(0);
  for (int i = 0; i < examples; ++i)
    *learn.add_examples() =
        SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F + static_cast<float>(i % 7)}});
  return learn;
}

TEST_F(ExplainTest, TheCurvesOutliveTheServerAndEndWithThePresent) {
  CreateDense("line", 1);
  v1::Model model = Get("line", v1::MODEL_VIEW_LEARNING_CURVE);
  ASSERT_EQ(model.learning_curve_size(), 1);
  EXPECT_EQ(model.learning_curve(0).revision(), 0);
  EXPECT_FALSE(model.learning_curve(0).has_margin_ceiling());
  ASSERT_TRUE(Learn(Contradictions(3000)).ok());
  model = Get("line", v1::MODEL_VIEW_LEARNING_CURVE);
  EXPECT_FALSE(model.has_weights());
  EXPECT_EQ(Get("line", v1::MODEL_VIEW_BASIC).learning_curve_size(), 0);
  ASSERT_GT(model.revision(), 600);
  EXPECT_LE(model.learning_curve_size(), 513);
  EXPECT_GE(model.learning_curve_size(), 256);
  const v1::LearningCurvePoint last = model.learning_curve(model.learning_curve_size() - 1);
  EXPECT_EQ(last.revision(), model.revision());
  EXPECT_EQ(last.examples(), 3000U);
  EXPECT_EQ(last.weight_norm(), model.report().weight_norm());
  EXPECT_EQ(last.margin_ceiling(), model.report().margin_ceiling());
  server_.Kill();
  Restart();
  const v1::Model again = Get("line", v1::MODEL_VIEW_LEARNING_CURVE);
  ASSERT_EQ(again.learning_curve_size(), model.learning_curve_size());
  for (int i = 0; i + 1 < model.learning_curve_size(); ++i)
    EXPECT_EQ(again.learning_curve(i).SerializeAsString(),
              model.learning_curve(i).SerializeAsString());
}

}  // namespace
}  // namespace perceptrond::testing
