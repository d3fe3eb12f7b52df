// Nothing but the updates decides where a model's learning curve has points, and the curve outlives restarts.
#include "core/convergence/curve_points.h"

#include <bit>

#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/recording_journal.h"
#include "tests/support/traffic.h"

namespace perceptrond::history_test {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// Labels drawn by lot: nothing separates them, so updates never end.
std::vector<SvmExample> Noise(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<SvmExample> examples(count);
  for (SvmExample& example : examples) {
    example.indices = {0, 1, 2};
    example.values = {normal(random), normal(random), normal(random)};
    example.label = random() % 2 == 0 ? 1 : -1;
  }
  return examples;
}

// Without times.
std::vector<std::string> Figures(const std::vector<LearningCurvePoint>& points) {
  std::vector<std::string> figures;
  for (LearningCurvePoint point : points) {
    point.clear_time();
    figures.push_back(point.ShortDebugString());
  }
  return figures;
}

TEST(LearningCurve, APointIsTheReportRightAfterItsUpdate) {
  LoneModel lone(testing::DenseSettings("m", 3));
  std::vector<std::string> expected;
  for (const SvmExample& example : Noise(1, 300)) {
    if (lone.Learn(Columns().Add(example.indices, example.values, example.label).batch())
            .updated_rows.empty())
      continue;
    const ConvergenceReport report = MakeReport(*lone.model);
    LearningCurvePoint point = MakePoint(report, absl::UnixEpoch());
    EXPECT_EQ(point.weight_norm(), report.weight_norm());
    EXPECT_EQ(point.margin_ceiling(), report.margin_ceiling());
    EXPECT_EQ(point.has_margin_floor(), report.has_margin_floor());
    EXPECT_EQ(point.window_error(), report.window_error());
    point.clear_time();
    expected.push_back(point.ShortDebugString());
  }
  ASSERT_GT(expected.size(), 100U);
  ASSERT_LE(expected.size(), CurvePoints::kMaxPoints);
  EXPECT_EQ(Figures(MakeLearningCurve(*lone.model).points), expected);
}

TEST(LearningCurve, MessagesAndCommitsDoNotDecideWhereTheyHavePoints) {
  const std::vector<SvmExample> examples = Noise(2, 6000);
  LoneModel whole(testing::DenseSettings("m", 3));
  whole.Learn(Columns(examples).batch());
  LoneModel parts(testing::DenseSettings("m", 3));
  for (size_t begin = 0; begin < examples.size(); begin += 37) {
    parts.Learn(Columns(examples, begin, begin + 37).batch());
    if (begin % 2 == 0) parts.model->ledger().TakePending().entry;
  }
  const LearningCurve curves = MakeLearningCurve(*whole.model);
  EXPECT_GT(whole.model->revision(), 4 * CurvePoints::kMaxPoints);
  EXPECT_GT(curves.points.size(), CurvePoints::kMaxPoints / 2);
  EXPECT_EQ(Figures(curves.points), Figures(MakeLearningCurve(*parts.model).points));
}

// Without a point of its own for the last update a curve would climb to where it has long been.
TEST(LearningCurve, EndsWithTheLastUpdateAndThePresent) {
  LoneModel lone(testing::DenseSettings("m", 2));
  LearningCurve curve = MakeLearningCurve(*lone.model);
  ASSERT_EQ(curve.points.size(), 1U);
  EXPECT_EQ(curve.points[0].revision(), 0);
  EXPECT_FALSE(curve.points[0].has_margin_ceiling());
  const std::vector<SvmExample> mistakes = {{1, {0}, {1}}, {-1, {0}, {-1}}};
  std::vector<SvmExample> all = mistakes;
  all.resize(2000, {1, {0}, {2}});
  lone.Learn(Columns(mistakes).batch());
  const uint64_t revision = lone.model->revision();
  ASSERT_GT(revision, 0U);
  curve = MakeLearningCurve(*lone.model);
  const LearningCurvePoint updated = curve.points.back();
  // Without more examples the present stands for the last update.
  ASSERT_EQ(curve.points.size(), revision);
  lone.Learn(Columns(all, mistakes.size(), all.size()).batch(), 1);
  lone.Learn(Columns(all).batch(), 2);
  ASSERT_EQ(lone.model->revision(), revision);
  curve = MakeLearningCurve(*lone.model);
  ASSERT_EQ(curve.points.size(), revision + 1);
  const LearningCurvePoint& own = curve.points[revision - 1];
  const LearningCurvePoint& present = curve.points[revision];
  EXPECT_EQ(own.revision(), present.revision());
  EXPECT_EQ(own.examples(), present.examples() - curve.report.streak());
  EXPECT_EQ(own.mistakes(), present.mistakes());
  EXPECT_EQ(own.weight_norm(), present.weight_norm());
  EXPECT_EQ(own.weight_norm(), updated.weight_norm());
  EXPECT_GT(own.window_error(), 0);
  EXPECT_EQ(present.window_error(), 0);
  EXPECT_EQ(present.examples(), 4000U);
  EXPECT_EQ(curve.report.examples(), 4000U);
  // The floor came with a pass that changed nothing, after the last update.
  ASSERT_TRUE(present.has_margin_floor());
  EXPECT_EQ(present.margin_floor(), MakeReport(*lone.model).margin_floor());
}

class StoredCurve : public testing::StoreTest, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(StoredCurve, HasTheErrorOfAWindowThatGoesOnAfterAStart) {
  Store::Options options;
  options.snapshot_bytes = GetParam();
  Open(options);
  Create("models/m");
  const auto learn = [this](int count, int label) {
    Columns rows;
    for (int i = 0; i < count; ++i) rows.AddDense({1, 0}, label);
    EXPECT_OK(testing::Send(*store_, "models/m", "p", rows.batch()).status);
  };
  learn(500, 1);
  Open(options);
  learn(1, -1);
  const LearningCurvePoint latest = MakeLearningCurve(**store_->Acquire("models/m")).points.back();
  EXPECT_EQ(latest.examples(), 501U);
  // The first example was a mistake, too.
  EXPECT_EQ(latest.window_error(), 2.0 / 501);
}

INSTANTIATE_TEST_SUITE_P(Snapshots, StoredCurve,
                         ::testing::Values(uint64_t{1}, uint64_t{1} << 14, uint64_t{1} << 40));

TEST(LearningCurve, TakeFewBytesOfTheJournal) {
  auto recording = std::make_shared<testing::RecordingJournal>(std::make_shared<MemoryJournal>());
  Store store(std::make_unique<testing::JournalDecorator>(recording), Store::Options());
  ASSERT_OK(store.Create(testing::DenseSettings("models/m", 3), "", false).status());
  ASSERT_OK(testing::Send(store, "models/m", "p", Columns(Noise(5, 20'000)).batch()).status);
  uint64_t updates = 0;
  uint64_t points = 0;
  for (const storage::UpdateRecord& record : recording->records()) {
    updates += static_cast<uint64_t>(record.labels_size());
    points += static_cast<uint64_t>(record.learning_curve_size());
  }
  // One an update at first; then half of them, a quarter, and so on.
  const uint64_t doublings = std::bit_width(updates / CurvePoints::kMaxPoints);
  EXPECT_GT(updates, 8 * CurvePoints::kMaxPoints);
  EXPECT_LE(points, CurvePoints::kMaxPoints + 1 + doublings * (CurvePoints::kMaxPoints / 2 + 1));
}

}  // namespace
}  // namespace perceptrond::history_test
