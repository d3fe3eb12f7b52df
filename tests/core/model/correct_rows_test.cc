// Rows evaluated on a copy and counted later leave the model as if it had learned them.
#include "core/model/correct_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/model/views.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::Freeze;
using testing::LoneModel;
using testing::PositionOf;
using testing::StateBytes;

constexpr uint32_t kDimension = 6;

// Rows of x_0 > 0, one label in 20 wrong, one row in 15 invalid.
Columns RandomRows(std::mt19937& random, int rows) {
  std::normal_distribution<float> normal;
  Columns columns;
  for (int i = 0; i < rows; ++i) {
    std::vector<float> values(kDimension);
    for (float& value : values) value = normal(random);
    const int label = (values[0] > 0) == (random() % 20 == 0) ? -1 : 1;
    columns.AddDense(values, random() % 15 == 0 ? 7 : label);
  }
  return columns;
}

TEST(CorrectRowsTest, CountedLaterTheyLeaveTheModelAsIfLearned) {
  std::mt19937 random(3);
  LoneModel one(DenseSettings("one", kDimension));
  LoneModel two(DenseSettings("one", kDimension));
  for (int i = 0; i < 200; ++i) {
    const Columns columns = RandomRows(random, 8);
    const LearnOutcome expected = one.Learn(columns.batch());
    CorrectRows correct;
    ASSERT_OK(EvaluateCorrectRows(*two.model, columns.batch(), {}, true, correct));
    for (size_t row = 0; row < correct.rows; ++row) {
      EXPECT_EQ(correct.outcome.predicted[row], expected.predicted[row]);
      // Bits: NaN for rows with errors.
      EXPECT_EQ(std::memcmp(&correct.outcome.scores[row], &expected.scores[row], sizeof(float)), 0);
    }
    const int64_t begin = PositionOf(two.producer).next_offset;
    MutexLock turn(&two.producer.turn);
    ASSERT_OK(CountCorrectRows(*two.model, two.producer, begin, static_cast<int64_t>(correct.rows),
                               {{correct.outcome.revision, correct.tally}}));
    if (correct.rows < columns.batch().rows()) {
      LearnCall call;
      call.batch = columns.batch();
      call.producer = &two.producer;
      call.first_offset = begin;
      LearnOutcome outcome;
      ASSERT_OK(two.model->Learn(call, outcome));
      EXPECT_EQ(outcome.duplicates, correct.rows);
      // The first row that calls for an update was left.
      EXPECT_EQ(outcome.updated_rows.at(0), correct.rows);
    }
    ASSERT_EQ(MakeReport(*one.model).streak(), MakeReport(*two.model).streak()) << i;
  }
  EXPECT_EQ(PositionOf(one.producer).next_offset, PositionOf(two.producer).next_offset);
  const ConvergenceReport report = MakeReport(*one.model);
  const ConvergenceReport other = MakeReport(*two.model);
  EXPECT_GT(report.updates(), 10U);
  EXPECT_EQ(report.updates(), other.updates());
  EXPECT_EQ(report.examples(), other.examples());
  EXPECT_EQ(report.mistakes(), other.mistakes());
  EXPECT_EQ(report.radius(), other.radius());
  EXPECT_EQ(report.row_errors().at("UNKNOWN_LABEL"), other.row_errors().at("UNKNOWN_LABEL"));
  EXPECT_EQ(one.Weights(kDimension), two.Weights(kDimension));
}

TEST(CorrectRowsTest, RowsOfAnEarlierRevisionExtendNoStreak) {
  LoneModel model(DenseSettings("one", 1));
  model.Learn(Columns().AddDense({1}, 1).batch());
  CorrectRows correct;
  const Columns right = Columns().AddDense({2}, 1).AddDense({3}, 1);
  ASSERT_OK(EvaluateCorrectRows(*model.model, right.batch(), {}, false, correct));
  EXPECT_EQ(correct.rows, 2U);
  EXPECT_TRUE(correct.outcome.scores.empty());
  Producer other("");
  {
    LearnCall call;
    const Columns wrong = Columns().AddDense({1}, -1);
    call.batch = wrong.batch();
    call.producer = &other;
    LearnOutcome outcome;
    MutexLock turn(&other.turn);
    ASSERT_OK(model.model->Learn(call, outcome));
  }
  MutexLock turn(&model.producer.turn);
  ASSERT_OK(CountCorrectRows(*model.model, model.producer, 1, 2,
                             {{correct.outcome.revision, correct.tally}}));
  EXPECT_EQ(MakeReport(*model.model).streak(), 0U);
  EXPECT_EQ(MakeReport(*model.model).examples(), 4U);
}

TEST(CorrectRowsTest, WhatDoesNotContinueTheProducerIsRefused) {
  LoneModel model(DenseSettings("one", 1));
  model.Learn(Columns().AddDense({1}, 1).batch());
  const std::string before = StateBytes(*model.model);
  Tally tally;
  tally.examples = 1;
  MutexLock turn(&model.producer.turn);
  for (const int64_t offset : {int64_t{0}, int64_t{2}}) {
    const absl::Status status =
        CountCorrectRows(*model.model, model.producer, offset, 1, {{1, tally}});
    EXPECT_TRUE(absl::IsAborted(status)) << status;
  }
  const absl::Status unknown = CountCorrectRows(*model.model, model.producer, 1, 1, {{2, tally}});
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  EXPECT_EQ(StateBytes(*model.model), before);
}

TEST(CorrectRowsTest, AFrozenModelEvaluatesNone) {
  LoneModel model(DenseSettings("one", 1));
  const Columns rows = Columns().AddDense({1}, 1);
  model.Learn(rows.batch());
  CorrectRows correct;
  ASSERT_OK(EvaluateCorrectRows(*model.model, rows.batch(), {}, true, correct));
  EXPECT_EQ(correct.rows, 1U);
  Freeze(*model.model, true);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      EvaluateCorrectRows(*model.model, rows.batch(), {}, true, correct)));
}

TEST(CorrectRowsTest, OnlyModelsWhoseCorrectRowsNeedToBeCountedAloneAreEvaluatedElsewhere) {
  v1::Model settings = DenseSettings("one", 1);
  EXPECT_TRUE(CanEvaluateElsewhere(*LoneModel(settings).model));
  settings.mutable_learner()->mutable_averaged();
  EXPECT_TRUE(CanEvaluateElsewhere(*LoneModel(settings).model));
  settings.mutable_stored_examples()->set_max_sample(5);
  EXPECT_FALSE(CanEvaluateElsewhere(*LoneModel(settings).model));
  settings = DenseSettings("one", 1);
  settings.mutable_learner()->mutable_batch_perceptron();
  EXPECT_FALSE(CanEvaluateElsewhere(*LoneModel(settings).model));
}

}  // namespace
}  // namespace perceptrond
