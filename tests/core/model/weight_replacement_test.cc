// Weights replaced by separators: what answers, what is reported, and what the journal replays.
#include <limits>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/core/model/analysed_model.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::Analyzed;
using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::MakeSeparable;
using testing::Reload;
using testing::Sampled;
using testing::SeparableData;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

class WeightReplacement : public ::testing::TestWithParam<const CatalogueEntry*> {
 protected:
  v1::Model Settings() const {
    v1::Model settings = Sampled(5);
    testing::SetLearner(*settings.mutable_learner(), GetParam()->name);
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
  const Columns columns(more_.examples);
  testing::ExpectReplayedToTheBit(lone, [&](Model& model) {
    LearnCall call;
    Producer producer("");
    call.batch = columns.batch();
    call.producer = &producer;
    LearnOutcome outcome;
    ASSERT_OK(model.Learn(call, outcome));
  });
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

TEST(WeightReplacementRules, TheErrorOfTheLatestExamplesBeginsAnew) {
  LoneModel lone(Sampled(2));
  lone.Learn(Columns().AddDense({1, 2}, 1).AddDense({2, -3}, -1).batch());
  ASSERT_GT(MakeReport(*lone.model).window_error(), 0);
  const NewWeights weights{{{{0}, {1}, 0.5F}}, {}, ~0U};
  ASSERT_OK(lone.model->ReplaceWeights(weights, std::nullopt).status());
  EXPECT_EQ(MakeReport(*lone.model).window_examples(), 0U);
  EXPECT_FALSE(MakeReport(*lone.model).drift().has_window_examples());
  lone.Learn(Columns().AddDense({1, 2}, 1).batch());
  EXPECT_EQ(MakeReport(*lone.model).window_examples(), 1U);
}

TEST(WeightReplacementRules, NamesOfTheSeparatorGetWeightsUpToTheCap) {
  for (const bool room : {true, false}) {
    v1::Model settings = testing::NamedSettings("m", room ? 3 : 1);
    settings.mutable_stored_examples()->set_max_sample(10);
    settings.mutable_learner()->set_bias_input(0);
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
      EXPECT_EQ(ListWeights(*lone.model)[0].names, std::vector<std::string>{"a"});
      continue;
    }
    ASSERT_OK(revision.status());
    EXPECT_EQ(ListWeights(*lone.model)[0].names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(ListWeights(*Reload(lone))[0].names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(ListWeights(*Reload(lone))[0].values, ListWeights(*lone.model)[0].values);
  }
}

TEST(WeightReplacementRules, TheAverageAndThePocketBeginAnew) {
  for (const std::string kind : {"averaged-perceptron", "pocket-perceptron"}) {
    v1::Model settings = DenseSettings("m", 2);
    testing::SetLearner(*settings.mutable_learner(), kind);
    settings.mutable_learner()->set_bias_input(0);
    LoneModel lone(settings);
    // A long run of right answers, so that the old weights would count for much.
    lone.Learn(Columns().AddDense({-8, 0}, 1).batch());
    for (int i = 0; i < 50; ++i) lone.Learn(Columns().AddDense({-1, 0}, 1).batch());
    ASSERT_OK(
        lone.model->ReplaceWeights({{{{0, 1}, {1, 0.5F}, 0}}, {}, ~0U}, std::nullopt).status());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    // One example that they survive, one that they do not: w = (1, -1.5) afterwards.
    lone.Learn(Columns().AddDense({1, 0}, 1).batch());
    EXPECT_EQ(lone.Weights(2), (std::vector<float>{1, 0.5F}));
    lone.Learn(Columns().AddDense({0, 2}, -1).batch());
    // Two examples evaluated since: w after the first is (1, 0.5), after the second (1, -1.5). The
    // pocket's run of one stands.
    const std::vector<float> expected =
        kind == "averaged-perceptron" ? std::vector<float>{1, -0.5F} : std::vector<float>{1, 0.5F};
    EXPECT_EQ(lone.Weights(2), expected);
  }
}

}  // namespace
}  // namespace perceptrond
