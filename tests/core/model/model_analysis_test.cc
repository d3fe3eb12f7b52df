// Analyses of stored examples, their figures in reports, and weights replaced by separators.
#include "core/model/model_analysis.h"

#include <cmath>
#include <random>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::MakeSeparable;
using testing::SeparableData;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

bool GoOn(const ModelAnalysisProgress& /*progress*/) { return true; }

absl::StatusOr<ModelAnalysis> Analyzed(Model& model) { return AnalyzeModel(model, {}, GoOn); }

// The reference: all of the rows, straight into the solver, whose claims have tests of their own.
Analysis Solve(const std::vector<SvmExample>& examples, double b) {
  std::vector<LabelledRow> rows;
  for (const SvmExample& example : examples) {
    rows.push_back({{example.indices.empty() ? kNoIndices : example.indices.data(),
                     example.values.data(), example.indices.size()},
                    example.label});
  }
  AnalysisOptions options;
  options.bias_input = b;
  return Analyze(rows, options, [](const AnalysisProgress&) { return true; });
}

// What the journal makes of the model, as after a crash.
std::shared_ptr<Model> Reload(LoneModel& lone) {
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  EXPECT_OK(lone.journal.Commit({&entry, 1}, true));
  return Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
      .value();
}

// The learner's state, without the stored examples.
std::string Learned(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_retained();
  // Its points have times, and what was known at them.
  snapshot.clear_history();
  return snapshot.SerializeAsString();
}

v1::Model Sampled(uint32_t dimension, uint32_t sample = 10'000) {
  v1::Model settings = DenseSettings("m", dimension);
  settings.mutable_retention()->set_sample(sample);
  return settings;
}

struct Setup {
  uint32_t dimension;
  double margin;
  double offset_value;
  double step_size;
  uint32_t sample;
};

void PrintTo(const Setup& setup, std::ostream* out) {
  *out << "d=" << setup.dimension << " margin=" << setup.margin << " b=" << setup.offset_value
       << " eta=" << setup.step_size << " sample=" << setup.sample;
}

class AnalysedRun : public ::testing::TestWithParam<Setup> {
 protected:
  static constexpr size_t kExamples = 240;
  static constexpr size_t kStretch = 40;

  static v1::Model Settings() {
    v1::Model settings = Sampled(GetParam().dimension, GetParam().sample);
    settings.mutable_learner()->set_offset_value(GetParam().offset_value);
    settings.mutable_learner()->set_step_size(GetParam().step_size);
    return settings;
  }
  // Updates until a pass over the data seen changes nothing.
  static uint64_t UpdatesToConverge(LoneModel& lone, const std::vector<SvmExample>& seen) {
    const uint64_t before = lone.model->revision();
    for (uint64_t revision = before + 1; revision != lone.model->revision();) {
      revision = lone.model->revision();
      lone.Learn(Columns(seen).batch());
    }
    return lone.model->revision() - before;
  }
};

// Whatever the moment of the analysis and of the report: no figure is wrong.
TEST_P(AnalysedRun, EveryFigureIsValidOrAbsent) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const SeparableData data = MakeSeparable(seed, kExamples, GetParam().dimension,
                                             GetParam().margin, GetParam().offset_value);
    for (size_t analysed = kStretch; analysed <= kExamples; analysed += kStretch) {
      LoneModel lone(Settings());
      for (size_t at = 0; at < kExamples; at += kStretch) {
        lone.Learn(Columns(data.examples, at, at + kStretch).batch());
        const size_t seen = at + kStretch;
        if (seen == analysed) ASSERT_OK(Analyzed(*lone.model).status());
        if (seen < analysed) continue;
        const std::vector<SvmExample> so_far(
            data.examples.begin(), data.examples.begin() + static_cast<std::ptrdiff_t>(seen));
        const Analysis truth = Solve(so_far, GetParam().offset_value);
        ASSERT_EQ(truth.separability, Separability::kSeparable);
        const ConvergenceReport report = MakeReport(*lone.model);
        ASSERT_TRUE(report.has_margin_ceiling());
        EXPECT_GE(report.margin_ceiling(), truth.margin_floor);
        EXPECT_FALSE(report.not_separable());
        const bool all = seen == analysed && GetParam().sample >= seen;
        EXPECT_EQ(report.analysis().current(), all);
        EXPECT_EQ(report.has_margin_floor(), all);
        EXPECT_EQ(report.has_updates_left(), all);
        if (!all) continue;
        EXPECT_LE(report.margin_floor(), truth.margin_ceiling);
        EXPECT_NEAR(report.margin_floor(), truth.margin_floor, 2e-6 * truth.margin_floor);
        EXPECT_GE(report.update_bound(), static_cast<double>(report.updates()));
        LoneModel on(Settings());
        on.Learn(Columns(so_far).batch());
        ASSERT_EQ(on.model->revision(), lone.model->revision());
        EXPECT_LE(UpdatesToConverge(on, so_far), report.updates_left());
      }
    }
  }
}

// The same data again change nothing of what is known of them.
TEST_P(AnalysedRun, RepetitionsLeaveTheAnalysisCurrent) {
  if (GetParam().sample < kExamples) GTEST_SKIP() << "never complete";
  const SeparableData data =
      MakeSeparable(4, kExamples, GetParam().dimension, GetParam().margin, GetParam().offset_value);
  LoneModel lone(Settings());
  lone.Learn(Columns(data.examples).batch());
  ASSERT_OK(Analyzed(*lone.model).status());
  const uint64_t most = lone.model->revision() + MakeReport(*lone.model).updates_left();
  UpdatesToConverge(lone, data.examples);
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.analysis().current(), true);
  EXPECT_EQ(lone.model->revision() + report.updates_left(), most);
  const ConvergenceReport again = MakeReport(*Reload(lone));
  // Right answers were never in a snapshot: the claim ends with the process, the ceiling does not.
  EXPECT_EQ(again.margin_ceiling(), report.margin_ceiling());
  EXPECT_EQ(again.analysis().margin_lower(), report.analysis().margin_lower());
  ASSERT_OK(lone.journal.SaveSnapshot(lone.model->id(), MakeSnapshot(*lone.model)));
  const ConvergenceReport saved = MakeReport(*Reload(lone));
  EXPECT_EQ(saved.analysis().current(), true);
  EXPECT_EQ(saved.updates_left(), report.updates_left());
}

// An example that counts less takes more updates than the bound; that it was right so far says
// nothing.
TEST_P(AnalysedRun, ExamplesThatCountOtherwiseEndWhatIsSaidOfUpdates) {
  if (GetParam().sample < kExamples) GTEST_SKIP() << "never complete";
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const SeparableData data = MakeSeparable(seed, kExamples, GetParam().dimension,
                                             GetParam().margin, GetParam().offset_value);
    LoneModel lone(Settings());
    const Columns columns(data.examples);
    const uint64_t updates = UpdatesToConverge(lone, data.examples);
    ASSERT_OK(Analyzed(*lone.model).status());
    lone.Learn(columns.batch(), 1);
    ASSERT_TRUE(MakeReport(*lone.model).has_updates_left());
    ASSERT_TRUE(MakeReport(*lone.model).has_update_bound());
    // All are right by now, so that none causes an update.
    std::vector<float> weights(kExamples, 1);
    weights[seed * 7] = 0.001F;
    Batch batch = columns.batch();
    batch.weights = weights;
    lone.Learn(batch, 2);
    lone.Learn(columns.batch(), 3);
    ASSERT_EQ(lone.model->revision(), updates);
    for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
      const ConvergenceReport report = MakeReport(*model);
      EXPECT_FALSE(report.has_updates_left());
      EXPECT_FALSE(report.has_update_bound());
      // What they say of the data, or of the updates made, is as true as before.
      EXPECT_TRUE(report.has_margin_ceiling());
      EXPECT_TRUE(report.has_margin_floor());
      EXPECT_TRUE(report.has_bound_in_use());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Separable, AnalysedRun,
                         ::testing::Values(Setup{2, 0.1, 1, 1, 1000}, Setup{2, 0.05, 0, 1, 1000},
                                           Setup{5, 0.1, 1, 0.1, 240}, Setup{5, 0.1, 0, 8, 1000},
                                           Setup{20, 0.05, 0.25, 1, 1000},
                                           Setup{20, 0.05, 4, 0.003, 1000},
                                           Setup{5, 0.1, 1, 1, 100}));

TEST(ModelAnalysis, ACertificateIsAProofForEveryLearnerOfTheFeaturesSpace) {
  const Columns xor_ = Columns()
                           .AddDense({-1, -1.5}, 1)
                           .AddDense({1, 1.5}, 1)
                           .AddDense({-1, 1.5}, -1)
                           .AddDense({1, -1.5}, -1);
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kKernel) continue;
    v1::Model settings = Sampled(2);
    settings.mutable_learner()->set_kind(
        static_cast<v1::LearnerKind>(static_cast<int>(*entry.kind) + 1));
    settings.set_margin_of_interest(0.5);
    LoneModel lone(settings);
    lone.Learn(xor_.batch());
    const ModelAnalysis analysis = Analyzed(*lone.model).value();
    EXPECT_EQ(analysis.analysis.separability, Separability::kNotSeparable) << entry.name;
    EXPECT_EQ(analysis.analysis.certificate.size(), 4U);
    EXPECT_FALSE(analysis.separator.has_value());
    // More data do not undo it, nor does a restart.
    lone.Learn(Columns().AddDense({3, 1}, 1).batch());
    for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
      const ConvergenceReport report = MakeReport(*model);
      EXPECT_EQ(report.not_separable(), true);
      EXPECT_EQ(report.margin_refuted(), true);
      EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_NOT_SEPARABLE);
      EXPECT_FALSE(report.has_margin_floor());
      EXPECT_FALSE(report.has_updates_left());
    }
  }
}

// Whatever the rule: no run is said to be bound by what it goes beyond, and the plain perceptron's
// is.
TEST(ModelAnalysis, BoundsUpdatesOnlyOfTheRulesThatTheTheoremSpeaksOf) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kKernel) continue;
    v1::Model settings = Sampled(5);
    settings.mutable_learner()->set_kind(
        static_cast<v1::LearnerKind>(static_cast<int>(*entry.kind) + 1));
    LoneModel lone(settings);
    const SeparableData data = MakeSeparable(3, 200, 5, 0.2, 1);
    const Columns columns(data.examples);
    ASSERT_OK((lone.Learn(columns.batch(), 1), Analyzed(*lone.model).status()));
    for (int64_t pass = 2; pass <= 20; ++pass) {
      lone.Learn(columns.batch(), pass);
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_TRUE(report.has_margin_floor()) << entry.name;
      ASSERT_EQ(report.has_update_bound(), entry.convergence_theorem) << entry.name;
      ASSERT_EQ(report.has_updates_left(), entry.convergence_theorem) << entry.name;
      ASSERT_LE(static_cast<double>(report.updates()),
                (report.has_update_bound() ? report.update_bound() : INFINITY));
    }
    if (!MakeReport(*lone.model).has_update_bound()) continue;
    // Weights from elsewhere end it.
    const ModelAnalysis analysis = Analyzed(*lone.model).value();
    if (!lone.model->ReplaceWeights(*analysis.separator, std::nullopt).ok()) continue;
    EXPECT_FALSE(MakeReport(*lone.model).has_update_bound()) << entry.name;
  }
}

// XOR, which nothing separates but a kernel.
TEST(ModelAnalysis, OfAKernelsSpaceIsRefusedAndEntersNothing) {
  v1::Model settings = Sampled(2);
  settings.mutable_learner()->set_kind(v1::LEARNER_KIND_KERNEL_PERCEPTRON);
  settings.mutable_learner()->mutable_kernel()->mutable_polynomial();
  settings.set_margin_of_interest(0.01);
  LoneModel lone(settings);
  const Columns xor_ =
      Columns().AddDense({0, 0}, -1).AddDense({0, 1}, 1).AddDense({1, 0}, 1).AddDense({1, 1}, -1);
  int64_t pass = 1;
  while (!lone.Learn(xor_.batch(), pass).pass->converged()) ASSERT_LT(++pass, 100);
  const absl::Status row_errors = Analyzed(*lone.model).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(row_errors)) << row_errors;
  EXPECT_EQ(testing::ReasonOf(row_errors), "KERNEL_SPACE");
  for (const std::shared_ptr<Model>& model : {lone.model, Reload(lone)}) {
    const ConvergenceReport report = MakeReport(*model);
    EXPECT_EQ(report.state(), ::perceptron::v1::CONVERGENCE_STATE_CONVERGED);
    EXPECT_FALSE(report.has_analysis());
    EXPECT_FALSE(report.has_margin_ceiling());
    EXPECT_FALSE(report.has_margin_floor());
    EXPECT_FALSE(report.has_update_bound());
    EXPECT_FALSE(report.has_updates_left());
    EXPECT_FALSE(report.has_margin_refuted());
    EXPECT_FALSE(report.has_not_separable());
    // (1, 1) with itself: (1 + 2)^2, and 1 for the offset.
    EXPECT_DOUBLE_EQ(report.radius(), std::sqrt(10));
  }
}

TEST(ModelAnalysis, NothingRetainedIsSaid) {
  LoneModel lone(DenseSettings("m", 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(Analyzed(*lone.model).status()));
}

TEST(ModelAnalysis, CancellingReportsNothing) {
  const SeparableData data = MakeSeparable(1, 300, 5, 0.05, 1);
  LoneModel lone(Sampled(5));
  lone.Learn(Columns(data.examples).batch());
  const auto status =
      AnalyzeModel(*lone.model, {}, [](const ModelAnalysisProgress&) { return false; }).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(MakeReport(*lone.model).has_analysis());
}

class WeightReplacement : public ::testing::TestWithParam<const CatalogueEntry*> {
 protected:
  v1::Model Settings() const {
    v1::Model settings = Sampled(5);
    settings.mutable_learner()->set_kind(
        static_cast<v1::LearnerKind>(static_cast<int>(*GetParam()->kind) + 1));
    return settings;
  }
  const SeparableData data_ = MakeSeparable(3, 200, 5, 0.05, 1);
  const SeparableData more_ = MakeSeparable(8, 200, 5, 0.01, 1);
};

TEST_P(WeightReplacement, TheSeparatorAnswersAndIsReplayedToTheBit) {
  LoneModel lone(Settings());
  lone.Learn(Columns(data_.examples, 0, 100).batch());
  lone.Learn(Columns(data_.examples, 100, 200).batch());
  const ModelAnalysis analysis = Analyzed(*lone.model).value();
  ASSERT_TRUE(analysis.separator.has_value());
  const uint64_t before = lone.model->revision();
  ASSERT_EQ(lone.model->ReplaceWeights(*analysis.separator, before).value(), before + 1);
  EXPECT_EQ(lone.model->revision(), before + 1);
  EXPECT_EQ(MakeReport(*lone.model).updates(), before + 1);
  const PredictOutcome answers = lone.Predict(Columns(data_.examples).batch());
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < data_.examples.size(); ++i)
    least = std::min(least, static_cast<double>(data_.examples[i].label * answers.scores[i]));
  EXPECT_GT(least, 0);
  // ALMA keeps its weights within the unit ball.
  if (GetParam()->rule != RuleKind::kMarginPerceptron) {
    EXPECT_NEAR(least, 1, 1e-5);
  }
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_update_bound());
  EXPECT_FALSE(report.has_updates_left());

  // From the journal, from a snapshot, and whatever comes after.
  const std::shared_ptr<Model> replayed = Reload(lone);
  EXPECT_EQ(Learned(*replayed), Learned(*lone.model));
  ASSERT_OK(lone.journal.SaveSnapshot(lone.model->id(), MakeSnapshot(*lone.model)));
  const std::shared_ptr<Model> restored = Reload(lone);
  EXPECT_EQ(StateBytes(*restored), StateBytes(*lone.model));
  const Columns columns(more_.examples);
  for (const std::shared_ptr<Model>& model : {lone.model, replayed, restored}) {
    LearnCall call;
    Producer producer("");
    call.batch = columns.batch();
    call.producer = &producer;
    LearnOutcome outcome;
    ASSERT_OK(model->Learn(call, outcome));
  }
  EXPECT_EQ(Learned(*replayed), Learned(*lone.model));
  EXPECT_EQ(Learned(*restored), Learned(*lone.model));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, WeightReplacement, ::testing::ValuesIn([] {
                           std::vector<const CatalogueEntry*> entries;
                           for (const CatalogueEntry& entry : Catalogue()) {
                             LearnerSettings settings;
                             settings.rule = entry.rule;
                             settings.wrapper = entry.wrapper;
                             if (MakeLearner(settings, 1)->replaceable_weights() != nullptr)
                               entries.push_back(&entry);
                           }
                           return entries;
                         }()),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(WeightReplacementRules, RefusalsChangeNothing) {
  LoneModel lone(Sampled(2));
  lone.Learn(Columns().AddDense({1, 2}, 1).AddDense({2, -3}, -1).batch());
  const std::string before = StateBytes(*lone.model);
  const NewWeights weights{{{{0}, {1}, 0.5F}}, {}, ~0U};
  EXPECT_TRUE(absl::IsAborted(lone.model->ReplaceWeights(weights, 7).status()));
  testing::Freeze(*lone.model, true);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(lone.model->ReplaceWeights(weights, std::nullopt).status()));
  EXPECT_EQ(StateBytes(*lone.model), before);
}

TEST(WeightReplacementRules, NamesOfTheSeparatorGetWeightsUpToTheCap) {
  for (const bool room : {true, false}) {
    v1::Model settings = testing::NamedSettings("m", room ? 3 : 1);
    settings.mutable_retention()->set_sample(10);
    settings.mutable_learner()->set_offset_value(0);
    LoneModel lone(settings);
    const auto learn = [&](std::vector<std::pair<std::string, float>> features, int32_t label) {
      testing::NamedExample example;
      example.features = std::move(features);
      example.label = label;
      lone.Learn(testing::NamedColumns({example}, {}).batch());
    };
    learn({{"a", 1}}, 1);
    // Right by "a" alone; the best separator leans on "b" too.
    learn({{"a", 0.1F}, {"b", 3}}, 1);
    const ModelAnalysis analysis = Analyzed(*lone.model).value();
    ASSERT_TRUE(analysis.separator.has_value());
    const auto revision = lone.model->ReplaceWeights(*analysis.separator, std::nullopt);
    if (!room) {
      EXPECT_TRUE(absl::IsResourceExhausted(revision.status()));
      EXPECT_EQ(ListWeights(*lone.model).names, std::vector<std::string>{"a"});
      continue;
    }
    ASSERT_OK(revision.status());
    EXPECT_EQ(ListWeights(*lone.model).names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(ListWeights(*Reload(lone)).names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(ListWeights(*Reload(lone)).values, ListWeights(*lone.model).values);
  }
}

TEST(WeightReplacementRules, TheAverageAndThePocketBeginAnew) {
  for (const v1::LearnerKind kind :
       {v1::LEARNER_KIND_AVERAGED_PERCEPTRON, v1::LEARNER_KIND_POCKET}) {
    v1::Model settings = DenseSettings("m", 2);
    settings.mutable_learner()->set_kind(kind);
    settings.mutable_learner()->set_offset_value(0);
    LoneModel lone(settings);
    // A long run of right answers, so that the old weights would count for much.
    lone.Learn(Columns().AddDense({-8, 0}, 1).batch());
    for (int i = 0; i < 50; ++i) lone.Learn(Columns().AddDense({-1, 0}, 1).batch());
    ASSERT_OK(lone.model->ReplaceWeights({{{{0, 1}, {1, 0.5F}, 0}}, {}, ~0U}, std::nullopt).status());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    // One example that they survive, one that they do not: w = (1, -1.5) afterwards.
    lone.Learn(Columns().AddDense({1, 0}, 1).batch());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    lone.Learn(Columns().AddDense({0, 2}, -1).batch());
    // Two examples evaluated since: w after the first is (1, 0.5), after the second (1, -1.5). The
    // pocket's run of one stands.
    const std::vector<float> expected = kind == v1::LEARNER_KIND_AVERAGED_PERCEPTRON
                                            ? std::vector<float>{1, -0.5F}
                                            : std::vector<float>{1, 0.5F};
    EXPECT_EQ(lone.Weights(2), expected);
  }
}

}  // namespace
}  // namespace perceptrond
