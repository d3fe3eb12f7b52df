// Models of several classes, whose labels go by number or by name and may come up mid-stream.
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
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

TEST(Classes, ALabelOrNameThatIsNoneOfTheModelsRefusesItsRow) {
  const auto expect_unknown = [](const LearnOutcome& outcome) {
    EXPECT_EQ(outcome.examples, 1U);
    ASSERT_EQ(outcome.row_errors.size(), 2U);
    for (const RowError& one : outcome.row_errors)
      EXPECT_EQ(one.error.code, ValidationCode::kUnknownLabel);
  };
  LoneModel numbers(Settings(ClassKind::kFixed));
  const LearnOutcome outcome =
      numbers.Learn(Columns().AddDense({1, 0}, 3).AddDense({1, 0}, -1).AddDense({1, 0}, 2).batch());
  expect_unknown(outcome);
  EXPECT_EQ(outcome.predicted, (std::vector<int32_t>{-1, -1, 0}));
  LoneModel names(Settings(ClassKind::kFixedNamed));
  const Columns columns = Columns().AddDense({1, 0}, 0).AddDense({1, 0}, 1).AddDense({1, 0}, 2);
  expect_unknown(names.Learn(Named(columns, {"nobody", "class 7"})));
  // "class 7" is class 2.
  EXPECT_EQ(names.Predict(Columns().AddDense({1, 0}, 0).unlabelled()).labels[0], 2);
}

// A model that took them could not be loaded again.
TEST(Classes, WeightsOfAClassThatDoesNotExistReplaceNone) {
  LoneModel lone(Settings(ClassKind::kNumbered));
  // Classes 0 and 1 have a number below that of a class, and no example.
  lone.Learn(Columns().AddDense({1, 0}, 2).batch());
  const auto replace = [&](size_t number, const NewWeights::Vector& vector) {
    NewWeights weights;
    weights.vectors.resize(3);
    weights.vectors[number] = vector;
    return testing::ReasonOf(lone.model->ReplaceWeights(weights, std::nullopt).status());
  };
  EXPECT_EQ(replace(0, {{0}, {1}, 0}), "REVISION_MISMATCH");
  EXPECT_EQ(replace(1, {{}, {}, 1}), "REVISION_MISMATCH");
  EXPECT_EQ(replace(2, {{0}, {1}, 0}), "");
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
}

}  // namespace
}  // namespace perceptrond::classes_test
