// Work that is stopped at each of its checks in turn leaves exactly what is counted.
#include "core/sync/cancellation.h"

#include "core/model/cost.h"
#include "core/model/explain.h"
#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/learners.h"
#include "tests/support/separable.h"
#include "tests/support/stop_after.h"
#include "tests/support/traffic.h"

namespace perceptrond::cancellation_test {
namespace {

using testing::Columns;
using testing::CountChecks;
using testing::LoneModel;
using testing::ReasonOf;
using testing::Space;
using testing::SpaceBatch;
using testing::StateBytes;
using testing::StopAfter;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// Random rows of `features` features of `dimension`, half of them +1.
std::vector<SvmExample> RandomRows(int rows, uint32_t features, uint32_t dimension,
                                   uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<SvmExample> examples(static_cast<size_t>(rows));
  for (SvmExample& example : examples) {
    example.label = random() % 2 == 0 ? 1 : -1;
    uint32_t index = 0;
    for (uint32_t i = 0; i < features; ++i) {
      index += 1 + random() % (dimension / features);
      example.indices.push_back(index - 1);
      example.values.push_back(static_cast<float>(random() % 7) - 3);
    }
  }
  return examples;
}

struct Case {
  std::string name;
  Space space;
  std::string learner;
  // 0: Fourier; 1: none.
  uint32_t degree = 1;
  uint32_t classes = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

v1::Model Settings(const Case& c) {
  v1::Model settings = testing::SpaceSettings(c.space, "models/m", 40);
  if (c.space == Space::kNamed)
    settings.mutable_feature_space()->mutable_named()->set_max_features(100'000);
  testing::SetLearner(*settings.mutable_learner(), c.learner);
  v1::FeatureMap& map = *settings.mutable_feature_space()->mutable_map();
  if (c.degree == 0) {
    map.mutable_fourier()->set_dimension(64);
    map.mutable_fourier()->set_gamma(0.1);
  } else if (c.degree > 1) {
    map.mutable_polynomial()->set_degree(c.degree);
  } else {
    settings.mutable_feature_space()->clear_map();
  }
  settings.mutable_stored_examples()->set_max_sample(1000);
  return settings;
}

class StoppedWork : public ::testing::TestWithParam<Case> {
 protected:
  // Learns the first `rows` rows of examples_, as producer p.
  absl::Status Learn(Model& model, size_t rows, LearnOutcome& outcome) const {
    const auto producer = model.ledger().FindProducer("p").value();
    MutexLock turn(&producer->turn);
    const SpaceBatch first(GetParam().space, {examples_.begin(), examples_.begin() + rows});
    LearnCall call;
    call.batch = first.batch();
    call.producer = producer.get();
    call.first_offset = 0;
    return model.Learn(call, outcome);
  }
  // A model that has learned the first `rows` rows.
  std::unique_ptr<LoneModel> Learned(size_t rows) const {
    auto lone = std::make_unique<LoneModel>(Settings(GetParam()));
    LearnOutcome outcome;
    EXPECT_OK(Learn(*lone->model, rows, outcome));
    return lone;
  }

  const std::vector<SvmExample> examples_ = RandomRows(12, 4, 40);
};

TEST_P(StoppedWork, WhatIsLearnedByThenIsExactlyWhatIsCounted) {
  std::vector<std::unique_ptr<LoneModel>> after;
  for (size_t rows = 0; rows <= examples_.size(); ++rows) after.push_back(Learned(rows));
  size_t stops = 0;
  for (int checks = 0;; ++checks) {
    LoneModel lone(Settings(GetParam()));
    LearnOutcome outcome;
    absl::Status status;
    {
      const StopAfter token(checks);
      const CancellationScope scope(&token, 1);
      status = Learn(*lone.model, examples_.size(), outcome);
    }
    if (status.ok()) break;
    ++stops;
    ASSERT_TRUE(absl::IsCancelled(status)) << status;
    const auto producer = lone.model->ledger().FindProducer("p").value();
    const auto rows = static_cast<size_t>(testing::PositionOf(*producer).next_offset);
    ASSERT_LT(rows, examples_.size());
    ASSERT_EQ(outcome.next_offset, static_cast<int64_t>(rows));
    ASSERT_EQ(outcome.examples, rows);
    ASSERT_EQ(MakeReport(*lone.model).examples(), rows);
    ASSERT_EQ(StateBytes(*lone.model), StateBytes(*after[rows]->model)) << checks;
    // The producer sends the whole message again.
    LearnOutcome again;
    ASSERT_OK(Learn(*lone.model, examples_.size(), again));
    ASSERT_EQ(again.duplicates, rows);
    ASSERT_EQ(StateBytes(*lone.model), StateBytes(*after.back()->model)) << checks;
  }
  // It can be stopped within each row.
  EXPECT_GT(stops, examples_.size());
}

TEST_P(StoppedWork, PredictionsAndExplanationsEndAtEachCheckAndChangeNothing) {
  const auto lone = Learned(examples_.size());
  const SpaceBatch rows(GetParam().space, RandomRows(8, 4, 40, 2));
  const std::string before = StateBytes(*lone->model);
  const PredictOutcome whole = lone->Predict(rows.batch());
  int checks = 0;
  for (;; ++checks) {
    const StopAfter token(checks);
    const CancellationScope scope(&token, 1);
    ExplainOutcome explained;
    PredictOutcome outcome;
    absl::Status status = lone->model->Explain(rows.batch(), {}, {}, explained);
    if (status.ok() || ReasonOf(status) == "NOT_LINEAR")
      status = lone->model->Predict(rows.batch(), {}, 0, outcome);
    ASSERT_EQ(status.ok(), !token.has_stopped());
    if (!status.ok()) {
      ASSERT_EQ(ReasonOf(status), "CANCELLED");
      continue;
    }
    EXPECT_EQ(outcome.scores, whole.scores);
    break;
  }
  EXPECT_GT(checks, 8);
  EXPECT_EQ(StateBytes(*lone->model), before);
}

TEST_P(StoppedWork, AStoppedLoadIsNoDamage) {
  const auto lone = Learned(examples_.size());
  JournalEntry entry = lone->model->ledger().TakePending().entry;
  entry.model_id = lone->model->id();
  ASSERT_OK(lone->journal.Commit({&entry, 1}, {}).status());
  const storage::ModelHeader header = lone->journal.Find(lone->model->name()).value();
  int checks = 0;
  for (;; ++checks) {
    const StopAfter token(checks);
    const CancellationScope scope(&token, 1);
    const auto loaded = Model::Load(header, lone->journal, Model::Limits());
    if (loaded.ok()) {
      EXPECT_EQ(testing::LearnedState(**loaded), testing::LearnedState(*lone->model));
      break;
    }
    ASSERT_EQ(ReasonOf(loaded.status()), "CANCELLED") << loaded.status();
  }
  EXPECT_GT(checks, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Each, StoppedWork,
    ::testing::Values(Case{"dense", Space::kDense, "perceptron"},
                      Case{"named", Space::kNamed, "arow"},
                      Case{"fourier", Space::kNamed, "perceptron", 0},
                      Case{"fourierDense", Space::kDense, "averaged-perceptron", 0},
                      Case{"polynomial", Space::kNamed, "perceptron", 3},
                      Case{"hashedPolynomial", Space::kHashed, "margin-perceptron", 2},
                      Case{"densePolynomial", Space::kDense, "pocket-perceptron", 2},
                      Case{"kernel", Space::kDense, "kernel-perceptron"},
                      Case{"voted", Space::kDense, "voted-perceptron"}),
    [](const auto& info) { return info.param.name; });

// The work of one row is checked every few milliseconds.
TEST(OneRow, IsCheckedWithinItsFeatureMapAndItsKernel) {
  v1::Model fourier = testing::NamedSettings("models/fourier");
  fourier.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(1 << 18);
  fourier.mutable_feature_space()->mutable_map()->mutable_fourier()->set_gamma(1);
  v1::Model polynomial = testing::NamedSettings("models/polynomial");
  polynomial.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(4);
  for (const v1::Model& settings : {fourier, polynomial}) {
    const LoneModel lone(settings);
    const SpaceBatch row(Space::kNamed, RandomRows(1, 50, 100));
    const CountChecks token;
    const CancellationScope scope(&token);
    PredictOutcome outcome;
    ASSERT_OK(lone.model->Predict(row.batch(), {}, 0, outcome));
    EXPECT_GT(token.asked(), 50) << settings.name();
  }
  v1::Model kernel = testing::DenseSettings("models/kernel", 20'000);
  testing::SetLearner(*kernel.mutable_learner(), "kernel-perceptron");
  LoneModel lone(kernel);
  // Random labels: most rows are mistakes.
  lone.Learn(Columns(RandomRows(500, 10'000, 20'000)).batch());
  ASSERT_GT(lone.model->revision(), 100U);
  const Columns row(RandomRows(1, 10'000, 20'000, 2));
  const CountChecks token;
  const CancellationScope scope(&token);
  PredictOutcome outcome;
  ASSERT_OK(lone.model->Predict(row.batch(), {}, 0, outcome));
  EXPECT_GT(token.asked(), 2);
}

TEST(Cost, GrowsWithRowsMapAndSupport) {
  const Columns one(RandomRows(1, 10, 40));
  const Columns two(RandomRows(2, 10, 40));
  const LoneModel plain(testing::DenseSettings("models/plain", 40));
  const uint64_t cost = plain.model->EstimateCost(one.unlabelled());
  EXPECT_EQ(cost, 10U);
  EXPECT_EQ(plain.model->EstimateCost(two.unlabelled()), 2 * cost);
  v1::Model squared = testing::DenseSettings("models/squared", 40);
  squared.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  EXPECT_GT(LoneModel(squared).model->EstimateCost(one.unlabelled()), 65U);
  v1::Model kernel = testing::DenseSettings("models/kernel", 40);
  testing::SetLearner(*kernel.mutable_learner(), "kernel-perceptron");
  LoneModel learned(kernel);
  const uint64_t before = learned.model->EstimateCost(one.unlabelled());
  MutexLock turn(&learned.producer.turn);
  learned.Learn(Columns(RandomRows(50, 10, 40)).batch());
  EXPECT_GT(learned.model->EstimateCost(one.unlabelled()), before + 10 * learned.model->revision());
}

TEST(Cost, AboveTheLimitIsRefused) {
  v1::Model settings = testing::NamedSettings("models/m");
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(1 << 20);
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_gamma(1);
  LoneModel lone(settings);
  const SpaceBatch rows(Space::kNamed, RandomRows(100, 20, 1000));
  PredictOutcome outcome;
  const absl::Status status = lone.model->Predict(rows.batch(), {}, 0, outcome);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(ReasonOf(status), "MESSAGE_TOO_COSTLY");
  LearnCall call;
  call.batch = rows.batch();
  call.producer = &lone.producer;
  LearnOutcome learned;
  MutexLock turn(&lone.producer.turn);
  EXPECT_EQ(ReasonOf(lone.model->Learn(call, learned)), "MESSAGE_TOO_COSTLY");
  ExplainOutcome explained;
  EXPECT_EQ(ReasonOf(lone.model->Explain(rows.batch(), {}, {}, explained)), "MESSAGE_TOO_COSTLY");
  EXPECT_EQ(lone.model->revision(), 0U);
  // A budget that the message's own rows may fill costs as if they had.
  v1::Model kernel = testing::DenseSettings("models/kernel", 1000);
  testing::SetLearner(*kernel.mutable_learner(), "kernel-perceptron");
  ASSERT_TRUE(testing::SetCount(*kernel.mutable_learner(), "budget", 100'000));
  const Columns many(RandomRows(10'000, 50, 1000));
  call.batch = many.batch();
  EXPECT_EQ(ReasonOf(LoneModel(kernel).model->Learn(call, learned)), "MESSAGE_TOO_COSTLY");
}

TEST(Cost, ARowThatAloneIsAboveTheLimitIsRefusedAloneAndTakesAnOffset) {
  v1::Model settings = testing::NamedSettings("models/m");
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(1 << 18);
  settings.mutable_feature_space()->mutable_map()->mutable_fourier()->set_gamma(1);
  LoneModel lone(settings);
  std::vector<SvmExample> examples = RandomRows(3, 1, 1000);
  examples[1] = RandomRows(1, 16'000, 100'000)[0];
  const SpaceBatch rows(Space::kNamed, examples);
  const auto refused = [](const std::vector<RowError>& errors) {
    return errors.size() == 1 && errors[0].row == 1 &&
           errors[0].error.code == ValidationCode::kTooCostly;
  };
  PredictOutcome predicted;
  ASSERT_TRUE(lone.model->Predict(rows.batch(), {}, 0, predicted).ok());
  EXPECT_TRUE(refused(predicted.row_errors));
  ExplainOutcome explained;
  ASSERT_TRUE(lone.model->Explain(rows.batch(), {}, {}, explained).ok());
  EXPECT_TRUE(refused(explained.row_errors));
  LearnCall call;
  call.batch = rows.batch();
  call.producer = &lone.producer;
  LearnOutcome learned;
  MutexLock turn(&lone.producer.turn);
  ASSERT_TRUE(lone.model->Learn(call, learned).ok());
  EXPECT_TRUE(refused(learned.row_errors));
  EXPECT_EQ(learned.examples, 2U);
  EXPECT_EQ(learned.next_offset, 3);
  call.first_offset = 3;
  call.all_or_nothing = true;
  EXPECT_TRUE(absl::IsInvalidArgument(lone.model->Learn(call, learned)));
  EXPECT_TRUE(refused(learned.row_errors));
}

TEST(Analysis, ThatIsStoppedLeavesNothing) {
  v1::Model settings = testing::DenseSettings("m", 100);
  settings.mutable_stored_examples()->set_max_sample(10'000);
  LoneModel lone(settings);
  lone.Learn(Columns(testing::MakeSeparable(11, 1000, 100, 0.01, 1).examples).batch());
  const auto analyze = [&](const AnalysisOptions& options) {
    return AnalyzeModel(*lone.model, options, [](const ModelAnalysisProgress&) { return true; });
  };
  {
    const StopAfter token(3, StopReason::kDraining);
    const CancellationScope scope(&token, 1'000'000);
    EXPECT_EQ(ReasonOf(analyze({}).status()), "DRAINING");
  }
  AnalysisOptions options;
  options.deadline = AnalysisMonitor::Clock::now();
  const auto late = analyze(options);
  ASSERT_OK(late.status());
  EXPECT_EQ(late->analysis.end, AnalysisEnd::kOutOfTime);
  EXPECT_FALSE(MakeReport(*lone.model).has_analysis());
}

}  // namespace
}  // namespace perceptrond::cancellation_test
