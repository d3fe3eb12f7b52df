// Models of several classes: their settings, their labels by number and by name, classes that
// are added mid-stream, and what is asked of all of them.
#include <cmath>
#include <functional>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"

namespace perceptrond::classes_test {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
namespace v1 = ::perceptron::v1;

v1::Model Settings(ClassKind kind, uint32_t max_classes = 3, uint32_t dimension = 2) {
  v1::Model settings = DenseSettings("m", dimension);
  testing::SetClasses(kind, max_classes, settings);
  return settings;
}

// The batch with its labels as positions in these names.
Batch Named(const Columns& columns, const std::vector<absl::string_view>& names) {
  Batch batch = columns.batch();
  batch.label_names = names;
  return batch;
}

// The field that a change of the settings makes invalid.
struct BadSettings {
  std::string field;
  std::function<void(v1::Model&)> change;
};

TEST(ClassSettings, OutOfRangeNameTheField) {
  const std::vector<BadSettings> all = {
      {"", [](v1::Model&) {}},
      {"model.learner.classes.max_classes",
       [](v1::Model& m) { m.mutable_learner()->mutable_classes()->set_max_classes(1); }},
      // More weights than a model may have.
      {"model.learner.classes.max_classes",
       [](v1::Model& m) { m.mutable_feature_space()->mutable_dense()->set_dimension(1 << 27); }},
      {"model.label_names", [](v1::Model& m) { m.add_label_names("a"); }},
      {"model.label_names",
       [](v1::Model& m) {
         for (const char* name : {"a", "b", "a"}) m.add_label_names(name);
       }},
      {"model.learner.class_weights",
       [](v1::Model& m) { m.mutable_learner()->add_class_weights(1); }},
      // AROW defines no weights of examples.
      {"model.learner.class_weights",
       [](v1::Model& m) {
         m.mutable_learner()->mutable_arow();
         for (int k = 0; k < 3; ++k) m.mutable_learner()->add_class_weights(1);
       }},
      {"model.learner.starting_weights.vectors",
       [](v1::Model& m) { testing::StartingVector(*m.mutable_learner()).set_bias(1); }},
      {"model.learner.tie_rule",
       [](v1::Model& m) { m.mutable_learner()->set_tie_rule(v1::TIE_RULE_CORRECT); }},
      {"model.learner.classes",
       [](v1::Model& m) { m.mutable_learner()->mutable_kernel_perceptron(); }},
      {"model.learner.arow.regularization",
       [](v1::Model& m) {
         testing::SetLearner(*m.mutable_learner(), "arow");
         testing::SetNumber(*m.mutable_learner(), "regularization", 0);
       }},
      {"model.feature_space.map.polynomial.degree",
       [](v1::Model& m) {
         m.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(9);
       }},
      {"model.feature_space.map.fourier.gamma",
       [](v1::Model& m) {
         m.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(5);
       }},
      {"model.feature_space.map.products.kind",
       [](v1::Model& m) {
         m.mutable_feature_space()->mutable_map()->mutable_products()->add_pairs();
       }},
  };
  for (const BadSettings& bad : all) {
    v1::Model settings = Settings(ClassKind::kFixed);
    bad.change(settings);
    FillDefaults(settings);
    const absl::Status status = ReadSettings(settings).status();
    google::rpc::BadRequest details;
    details.ParseFromString(std::string(status.GetPayload(kBadRequestUrl).value_or(absl::Cord())));
    EXPECT_EQ(details.field_violations_size() > 0 ? details.field_violations(0).field() : "",
              bad.field)
        << status;
  }
}

TEST(ClassSettings, ANamedSpaceLeftOpenMakesRoomForAllClasses) {
  v1::Model settings = testing::NamedSettings("m");
  testing::SetClasses(ClassKind::kNumbered, 10000, settings);
  FillDefaults(settings);
  EXPECT_EQ(settings.feature_space().named().max_features(), (1U << 28) / 10000);
  EXPECT_OK(ReadSettings(settings).status());
}

TEST(Classes, ALabelThatIsNoClassRefusesItsRow) {
  LoneModel lone(Settings(ClassKind::kFixed));
  const LearnOutcome outcome =
      lone.Learn(Columns().AddDense({1, 0}, 3).AddDense({1, 0}, -1).AddDense({1, 0}, 2).batch());
  EXPECT_EQ(outcome.examples, 1U);
  ASSERT_EQ(outcome.row_errors.size(), 2U);
  for (const RowError& row_errors : outcome.row_errors)
    EXPECT_EQ(row_errors.error.code, ValidationCode::kUnknownLabel);
  EXPECT_EQ(outcome.predicted, (std::vector<int32_t>{-1, -1, 0}));
}

TEST(Classes, ANameThatIsNoneOfTheModelsRefusesItsRow) {
  LoneModel lone(Settings(ClassKind::kFixedNamed));
  const Columns columns = Columns().AddDense({1, 0}, 0).AddDense({1, 0}, 1).AddDense({1, 0}, 2);
  const LearnOutcome outcome = lone.Learn(Named(columns, {"nobody", "class 7"}));
  EXPECT_EQ(outcome.examples, 1U);
  ASSERT_EQ(outcome.row_errors.size(), 2U);
  for (const RowError& one : outcome.row_errors)
    EXPECT_EQ(one.error.code, ValidationCode::kUnknownLabel);
  // "class 7" is class 2.
  EXPECT_EQ(lone.Predict(Columns().AddDense({1, 0}, 0).unlabelled()).labels[0], 2);
}

TEST(Classes, TwoLabelsMayGoByNameInColumnsToo) {
  v1::Model settings = DenseSettings("m", 1);
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  LoneModel lone(settings);
  const LearnOutcome outcome = lone.Learn(
      Named(Columns().AddDense({1}, 1).AddDense({2}, 0).AddDense({1}, 2), {"ham", "spam", "eggs"}));
  EXPECT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(lone.Weights(1)[0], 1 - 2);
}

TEST(Classes, ComeUpByNameWithTheirFirstUpdate) {
  LoneModel lone(Settings(ClassKind::kNamed));
  EXPECT_TRUE(LabelNames(*lone.model).empty());
  const Columns rows =
      Columns().AddDense({1, 0}, 1).AddDense({0, 1}, 0).AddDense({0, 1}, 0).AddDense({1, 0}, 1);
  const LearnOutcome outcome = lone.Learn(Named(rows, {"b", "a"}));
  EXPECT_EQ(LabelNames(*lone.model), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(outcome.predicted, (std::vector<int32_t>{-1, 0, 1, 1}));
  EXPECT_EQ(outcome.updated_rows, (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(outcome.mistakes, 3U);
}

TEST(Classes, ANameBeyondTheMostIsRefusedAndTheOthersAreLearned) {
  LoneModel lone(Settings(ClassKind::kNamed, 2));
  const Columns rows =
      Columns().AddDense({1, 0}, 0).AddDense({0, 1}, 1).AddDense({1, 1}, 2).AddDense({1, 0}, 0);
  const LearnOutcome outcome = lone.Learn(Named(rows, {"a", "b", "c"}));
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 2U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kClassCap);
  EXPECT_EQ(outcome.examples, 3U);
  EXPECT_EQ(LabelNames(*lone.model).size(), 2U);
}

TEST(Classes, AClassWhoseExampleIsRefusedDoesNotComeUp) {
  v1::Model settings = testing::NamedSettings("m", 1);
  testing::SetClasses(ClassKind::kNamed, 5, settings);
  LoneModel lone(settings);
  const testing::NamedColumns one({{{{"x", 1}}, 0}});
  Batch batch = one.batch();
  const std::vector<absl::string_view> a = {"a"};
  batch.label_names = a;
  lone.Learn(batch);
  const testing::NamedColumns other({{{{"y", 1}}, 0}});
  batch = other.batch();
  const std::vector<absl::string_view> b = {"b"};
  batch.label_names = b;
  const LearnOutcome outcome = lone.Learn(batch);
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kFeatureCap);
  EXPECT_EQ(LabelNames(*lone.model), (std::vector<std::string>{"a"}));
}

TEST(Classes, ComeUpByNumberInAnyOrder) {
  LoneModel lone(Settings(ClassKind::kNumbered, 9));
  EXPECT_EQ(lone.Predict(Columns().AddDense({1, 0}, 0).unlabelled()).labels[0], -1);
  lone.Learn(Columns().AddDense({1, 0}, 7).AddDense({0, 1}, 2).AddDense({1, 0}, 7).batch());
  PredictOutcome outcome;
  ASSERT_OK(lone.model->Predict(Columns().AddDense({1, 0}, 0).AddDense({0, 1}, 0).unlabelled(), {},
                                0, outcome, true));
  EXPECT_EQ(outcome.labels, (std::vector<int32_t>{7, 2}));
  ASSERT_EQ(outcome.class_scores.size(), 16U);
  for (size_t k = 0; k < 8; ++k)
    EXPECT_EQ(std::isnan(outcome.class_scores[k]), k != 2 && k != 7) << k;
}

TEST(Classes, TheMarginOfAnAnswerIsItsDistance) {
  LoneModel lone(Settings(ClassKind::kFixed));
  EXPECT_TRUE(lone.Predict(Columns().AddDense({1, 0}, 0).unlabelled()).distances.empty());
  lone.Learn(Columns().AddDense({3, 4}, 2).batch());
  // w_2 = (3, 4), w_0 = -w_2, w_1 = 0, each with its offset: the next is class 1.
  const PredictOutcome outcome = lone.Predict(Columns().AddDense({3, 4}, 0).unlabelled());
  EXPECT_EQ(outcome.labels[0], 2);
  EXPECT_EQ(outcome.scores[0], 26);
  EXPECT_NEAR(outcome.distances[0], 26 / std::sqrt(50), 1e-5);
}

TEST(Classes, TooManyScoresAtOnceAreRefused) {
  LoneModel lone(Settings(ClassKind::kFixed, 10000));
  Columns columns;
  for (int n = 0; n < 105; ++n) columns.AddDense({1, 0}, 0);
  PredictOutcome outcome;
  const absl::Status status = lone.model->Predict(columns.unlabelled(), {}, 0, outcome, true);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(lone.model->Predict(columns.unlabelled(), {}, 0, outcome, false));
}

// Mistakes on both rows: W = (eta x) for the row's class less the same for the class predicted.
TEST(Classes, AreExplainedByTheirScores) {
  LoneModel lone(Settings(ClassKind::kFixed));
  const Columns rows = Columns().AddDense({1, 0}, 1).AddDense({0, 2}, 2);
  lone.Learn(rows.batch());
  PredictOutcome predicted;
  ASSERT_OK(
      lone.model->Predict(rows.unlabelled(), {}, 0, predicted, /*include_class_scores=*/true));
  const size_t classes = predicted.class_scores.size() / 2;
  for (size_t k = 0; k < classes; ++k) {
    ExplainOutcome outcome;
    ASSERT_OK(
        lone.model->Explain(rows.unlabelled(), {}, {0, 20, static_cast<int32_t>(k)}, outcome));
    for (size_t i = 0; i < 2; ++i) {
      const Explanation& explanation = outcome.explanations.at(i);
      EXPECT_EQ(explanation.label, static_cast<int32_t>(k));
      EXPECT_EQ(static_cast<float>(explanation.score), predicted.class_scores[i * classes + k]);
      double sum = explanation.bias;
      for (const Contribution& one : explanation.contributions) sum += one.contribution;
      EXPECT_EQ(sum, explanation.score);
    }
  }
  ExplainOutcome outcome;
  ASSERT_OK(lone.model->Explain(rows.unlabelled(), {}, {}, outcome));
  EXPECT_EQ(outcome.explanations.at(1).label, predicted.labels.at(1));
  EXPECT_EQ(outcome.explanations.at(1).support_absent, "");
}

TEST(Classes, AreNotExplainedForALabelThatTheyDoNotHave) {
  LoneModel lone(Settings(ClassKind::kFixed));
  const Columns rows = Columns().AddDense({1, 0}, 1);
  ExplainOutcome outcome;
  EXPECT_EQ(testing::ReasonOf(lone.model->Explain(rows.unlabelled(), {}, {0, 20, 99}, outcome)),
            "UNKNOWN_LABEL");
}

void AddStart(const WeightList& list, v1::Model& settings) {
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.mutable_indices()->Assign(list.indices.begin(), list.indices.end());
  start.mutable_names()->Assign(list.names.begin(), list.names.end());
  start.mutable_values()->Assign(list.values.begin(), list.values.end());
  start.set_bias(list.bias);
}

// Sums of small integers are exact.
TEST(Classes, LearnOnFromGivenWeightsAsFromTheExamplesThatMadeThem) {
  for (const double b : {0.0, 1.0, 2.0}) {
    v1::Model settings = Settings(ClassKind::kFixed);
    settings.mutable_learner()->set_bias_input(b);
    LoneModel whole(settings);
    whole.Learn(Columns().AddDense({1, 0}, 1).AddDense({0, 2}, 2).AddDense({3, 1}, 0).batch());
    for (const WeightList& list : ListWeights(*whole.model)) AddStart(list, settings);
    ASSERT_EQ(settings.learner().starting_weights().vectors_size(), 3);
    LoneModel started(settings);
    EXPECT_FALSE(MakeReport(*started.model).has_bound_in_use());
    const Columns more = Columns().AddDense({1, 1}, 0).AddDense({-1, 2}, 1).AddDense({2, -1}, 2);
    const LearnOutcome one = whole.Learn(more.batch());
    const LearnOutcome other = started.Learn(more.batch());
    EXPECT_FALSE(one.updated_rows.empty());
    EXPECT_EQ(one.updated_rows, other.updated_rows);
    EXPECT_EQ(one.scores, other.scores);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(ListWeights(*whole.model)[k].values, ListWeights(*started.model)[k].values);
      EXPECT_EQ(ListWeights(*whole.model)[k].bias, ListWeights(*started.model)[k].bias);
    }
  }
}

TEST(Classes, ShareTheNamesOfTheirGivenWeights) {
  v1::Model settings = testing::NamedSettings("m");
  settings.clear_label_names();
  testing::SetClasses(ClassKind::kFixed, 2, settings);
  WeightList list;
  list.names = {"spam", "ham"};
  list.values = {2, -3};
  AddStart(list, settings);
  list.names = {"ham", "lunch"};
  list.bias = 1;
  AddStart(list, settings);
  const LoneModel lone(settings);
  const testing::NamedColumns rows(
      {{{{"spam", 1}, {"ham", 1}}, 0}, {{{"lunch", 1}, {"new", 1}}, 0}});
  Batch batch = rows.batch();
  batch.labels = {};
  PredictOutcome outcome;
  ASSERT_OK(lone.model->Predict(batch, {}, 0, outcome, /*include_class_scores=*/true));
  EXPECT_EQ(outcome.class_scores, (std::vector<float>{-1, 3, 0, -2}));
  const Explanation explanation = [&] {
    ExplainOutcome explained;
    EXPECT_OK(lone.model->Explain(batch, {}, {0, 20, 1}, explained));
    return explained.explanations.at(0);
  }();
  EXPECT_EQ(explanation.start_contribution, 3);
  settings.mutable_feature_space()->mutable_named()->set_max_features(2);
  FillDefaults(settings);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSettings(settings).status()));
}

TEST(Classes, ThatExamplesAddHaveNoGivenWeights) {
  v1::Model settings = Settings(ClassKind::kNumbered, 9);
  AddStart(WeightList(), settings);
  FillDefaults(settings);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSettings(settings).status()));
}

}  // namespace
}  // namespace perceptrond::classes_test
