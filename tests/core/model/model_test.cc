// One model refuses bad input and keeps its limits, and predicting changes nothing.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::NamedColumns;
using testing::NamedSettings;
using testing::ReasonOf;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

constexpr float kHuge = std::numeric_limits<float>::max();

absl::Status TryLearn(LoneModel& lone, const Batch& batch, LearnOutcome& outcome) {
  LearnCall call;
  call.batch = batch;
  call.producer = &lone.producer;
  return lone.model->Learn(call, outcome);
}

TEST(Predict, RefusesBadRowsAndScoresTheOthers) {
  LoneModel lone(DenseSettings("model", 2));
  lone.Learn(Columns().AddDense({1, 2}, 1).batch());
  const Columns columns = Columns().Add({0}, {1}, 0).Add({5}, {1}, 0).Add({1}, {1}, 0);
  const PredictOutcome outcome = lone.Predict(columns.unlabelled());
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kIndexOutOfRange);
  EXPECT_EQ(outcome.scores[0], 2);
  EXPECT_TRUE(std::isnan(outcome.scores[1]));
  EXPECT_EQ(outcome.scores[2], 3);
  EXPECT_EQ(outcome.labels, (std::vector<int32_t>{1, 0, 1}));
}

TEST(Predict, WaitsForNoRevisionButSaysThatItIsTooOld) {
  LoneModel lone(DenseSettings("model", 2));
  lone.Learn(Columns().AddDense({1, 2}, 1).batch());
  PredictOutcome outcome;
  EXPECT_OK(lone.model->Predict(Columns().AddDense({1, 2}, 0).batch(), {}, 1, outcome));
  const absl::Status status =
      lone.model->Predict(Columns().AddDense({1, 2}, 0).batch(), {}, 2, outcome);
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_EQ(ReasonOf(status), "REVISION_TOO_OLD");
}

TEST(Predict, HasNoDistancesWhileTheWeightsAreZero) {
  const LoneModel lone(DenseSettings("model", 2));
  const PredictOutcome outcome = lone.Predict(Columns().AddDense({1, 2}, 0).unlabelled());
  EXPECT_TRUE(outcome.distances.empty());
  EXPECT_EQ(outcome.scores, std::vector<float>{0});
}

TEST(Predict, UnknownNamesScoreNothing) {
  LoneModel lone(NamedSettings("model"));
  lone.Learn(NamedColumns({{{{"a", 2}}, 1}}).batch());
  Batch batch;
  const NamedColumns columns({{{{"a", 1}, {"zzz", 1000}}, 0}, {{{"b", 5}}, 0}, {{}, 0}});
  batch = columns.batch();
  batch.labels = {};
  EXPECT_EQ(lone.Predict(batch).scores, (std::vector<float>{3, 1, 1}));
}

TEST(Scores, AreFiniteWhateverTheWeights) {
  v1::Model settings = DenseSettings("model", 2);
  settings.mutable_learner()->set_bias_input(0);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({kHuge, kHuge}, 1).batch());
  const Columns columns = Columns().AddDense({kHuge, kHuge}, 1).AddDense({-kHuge, -kHuge}, -1);
  const PredictOutcome predicted = lone.Predict(columns.unlabelled());
  const LearnOutcome learned = lone.Learn(columns.batch());
  for (const std::vector<float>& scores : {predicted.scores, learned.scores, predicted.distances}) {
    ASSERT_EQ(scores.size(), 2U);
    EXPECT_TRUE(std::isfinite(scores[0])) << scores[0];
    EXPECT_GT(scores[0], 0);
    EXPECT_TRUE(std::isfinite(scores[1])) << scores[1];
    EXPECT_LT(scores[1], 0);
  }
  EXPECT_EQ(learned.mistakes, 0U);
}

TEST(Learn, RefusesWhatWouldLeaveFloat32AndLearnsOn) {
  v1::Model settings = DenseSettings("model", 3);
  settings.mutable_learner()->set_bias_input(0);
  LoneModel lone(settings);
  const Columns columns = Columns()
                              .AddDense({kHuge, kHuge, kHuge}, 1)
                              .AddDense({kHuge, -kHuge, -kHuge}, 1)
                              .AddDense({1, 0, 0}, -1);
  const LearnOutcome outcome = lone.Learn(columns.batch());
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kWeightOverflow);
  EXPECT_EQ(outcome.next_offset, 3);
  EXPECT_EQ(outcome.updated_rows, (std::vector<uint32_t>{0, 2}));
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.row_errors().at(ReasonName(ValidationCode::kWeightOverflow)), 1U);
  EXPECT_TRUE(std::isfinite(report.weight_norm()));
}

TEST(Learn, MixesDenseAndSparseRowsInOneHistory) {
  LoneModel lone(DenseSettings("model", 3));
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const auto value = [&] { return static_cast<float>(static_cast<int>(random() % 7) - 3); };
    const int32_t label = random() % 2 == 0 ? 1 : -1;
    if (random() % 2 == 0) {
      lone.Learn(Columns().AddDense({value(), value(), value()}, label).batch());
    } else {
      lone.Learn(Columns().Add({0, 2}, {value(), value()}, label).Add({}, {}, label).batch());
    }
  }
  EXPECT_EQ(StateBytes(*testing::Reload(lone)), StateBytes(*lone.model));
}

TEST(Learn, NamesTheFieldOfMalformedColumnsAndLearnsNothing) {
  LoneModel lone(DenseSettings("model", 3));
  LearnOutcome outcome;
  const Columns columns = Columns().AddDense({1, 2, 3}, 1);
  absl::Status status = TryLearn(lone, columns.unlabelled(), outcome);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(ReasonOf(status), "MISSING_LABEL");
  EXPECT_TRUE(status.GetPayload(kBadRequestUrl).has_value());
  const NamedColumns named({{{{"a", 1}}, 1}});
  status = TryLearn(lone, named.batch(), outcome);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(ReasonOf(status), "MALFORMED_COLUMNS");
  EXPECT_EQ(lone.model->revision(), 0U);
  EXPECT_EQ(testing::PositionOf(lone.producer).next_offset, 0);
}

TEST(Learn, RefusesRowsOfTooManyFeatures) {
  MemoryJournal journal;
  auto settings = DenseSettings("model", 100);
  FillDefaults(settings);
  storage::ModelHeader header;
  *header.mutable_model() = settings;
  ASSERT_OK(journal.Create(header));
  Model::Limits limits;
  limits.max_example_features = 2;
  const auto model = Model::Load(header, journal, limits).value();
  Producer producer("");
  LearnCall call;
  const Columns columns = Columns().Add({0, 1, 2}, {1, 1, 1}, 1).Add({0, 1}, {1, 1}, 1);
  call.batch = columns.batch();
  call.producer = &producer;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kTooManyFeatures);
  EXPECT_EQ(outcome.examples, 1U);
}

TEST(FeatureCap, RefusesTheUpdateThatNeedsMoreNamesAndAddsNoneOfThem) {
  LoneModel lone(NamedSettings("model", 3));
  lone.Learn(NamedColumns({{{{"a", 1}, {"b", 1}}, 1}}).batch());
  const std::string state = StateBytes(*lone.model);
  const LearnOutcome outcome =
      lone.Learn(NamedColumns({{{{"a", -5}, {"c", 1}, {"d", 1}}, 1}}).batch());
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kFeatureCap);
  EXPECT_EQ(outcome.next_offset, 2);
  EXPECT_EQ(StateBytes(*lone.model), state);
  // One more fits, and a correct example needs no name at all.
  EXPECT_EQ(lone.Learn(NamedColumns({{{{"a", -5}, {"c", 1}}, 1}}).batch()).updated_rows.size(), 1U);
  EXPECT_TRUE(
      lone.Learn(NamedColumns({{{{"x", 1}, {"y", 1}, {"z", 1}}, 1}}).batch()).row_errors.empty());
  const WeightList weights = ListWeights(*lone.model)[0];
  EXPECT_EQ(weights.names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(weights.values, (std::vector<float>{-4, 1, 1}));
}

TEST(FeatureCap, APassWhoseMistakeCouldNotBeLearnedHasNotConverged) {
  v1::Model settings = testing::NamedSettings("model", 2);
  settings.mutable_learner()->set_bias_input(0);
  LoneModel lone(settings);
  const NamedColumns columns({{{{"x", 1}}, 1}, {{{"y", 1}}, -1}, {{{"z", 1}}, 1}});
  for (int64_t pass = 1; pass <= 3; ++pass) {
    const LearnOutcome outcome = lone.Learn(columns.batch(), pass);
    EXPECT_EQ(outcome.row_errors.size(), 1U);
    EXPECT_FALSE(outcome.pass->converged()) << pass;
    EXPECT_FALSE(outcome.pass->has_margin()) << pass;
  }
  const NamedColumns known({{{{"x", 1}}, 1}, {{{"y", 1}}, -1}});
  EXPECT_TRUE(lone.Learn(known.batch(), 4).pass->converged());
}

TEST(Frozen, LearnsNothingAndPredictsAndIsWhatTheLatestSettingsSay) {
  LoneModel lone(DenseSettings("model", 2));
  v1::Model frozen;
  frozen.set_state(v1::MODEL_STATE_FROZEN);
  frozen.mutable_update_time()->set_seconds(2);
  v1::Model before;
  before.set_state(v1::MODEL_STATE_ACTIVE);
  before.mutable_update_time()->set_seconds(1);
  lone.model->Change(frozen);
  lone.model->Change(before);
  LearnOutcome outcome;
  const Columns columns = Columns().AddDense({1, 2}, 1);
  const absl::Status status = TryLearn(lone, columns.batch(), outcome);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(ReasonOf(status), "MODEL_FROZEN");
  EXPECT_EQ(testing::PositionOf(lone.producer).next_offset, 0);
  EXPECT_EQ(lone.Predict(columns.unlabelled()).scores.size(), 1U);
  before.mutable_update_time()->set_seconds(3);
  lone.model->Change(before);
  EXPECT_OK(TryLearn(lone, columns.batch(), outcome));
}

TEST(Closed, AnswersWhyAndChangesNothing) {
  LoneModel lone(DenseSettings("model", 2));
  lone.model->Close(ModelNotFound("model"));
  lone.model->Close(absl::UnavailableError("later"));  // the first reason stays
  const std::string state = StateBytes(*lone.model);
  LearnOutcome outcome;
  const Columns columns = Columns().AddDense({1, 2}, 1);
  EXPECT_EQ(ReasonOf(TryLearn(lone, columns.batch(), outcome)), "MODEL_NOT_FOUND");
  PredictOutcome predicted;
  EXPECT_TRUE(absl::IsNotFound(lone.model->Predict(columns.unlabelled(), {}, 0, predicted)));
  EXPECT_EQ(StateBytes(*lone.model), state);
}

}  // namespace
}  // namespace perceptrond
