// Scores by support examples: whatever the learner, in every space, they and the weights that they
// came on top of sum to the score; where they cannot, the answer says why.
#include <cmath>
#include <numeric>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond::support_examples_test {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::Space;
using testing::SpaceBatch;
using testing::TrafficOptions;
namespace v1 = ::perceptron::v1;

constexpr size_t kAll = 1 << 20;
constexpr uint32_t kDimension = 10;

struct Case {
  std::string kind;
  Space space;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form == Form::kVotes) continue;
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
      cases.push_back({entry.name, space});
  }
  return cases;
}

double SumOfMistakes(const Explanation& explanation) {
  double sum = explanation.other_support;
  for (const SupportContribution& mistake : explanation.support) sum += mistake.contribution;
  return sum;
}

double SizeOfMistakes(const Explanation& explanation) {
  double size = std::abs(explanation.score);
  for (const SupportContribution& mistake : explanation.support)
    size += std::abs(mistake.contribution);
  return size;
}

class ExplainBySupport : public ::testing::TestWithParam<Case> {
 protected:
  const CatalogueEntry& rule() const { return *FindLearner(GetParam().kind); }
  bool is_replaceable() const {
    LearnerSettings settings;
    settings.rule = rule().rule;
    settings.wrapper = rule().wrapper;
    return MakeLearner(settings, 1)->replaceable_weights() != nullptr;
  }
  v1::Model Settings() const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "m", kDimension);
    testing::SetLearner(*settings.mutable_learner(), GetParam().kind);
    if (GetParam().kind == "batch-perceptron")
      testing::SetCount(*settings.mutable_learner(), "mini_batch", 7);
    if (rule().takes_weights) {
      settings.mutable_learner()->add_class_weights(0.5);
      settings.mutable_learner()->add_class_weights(2);
    }
    return settings;
  }
  void Learn(LoneModel& lone, uint32_t seed) const {
    for (const testing::Message& message : Traffic(seed))
      lone.Learn(SpaceBatch(GetParam().space, message.examples).batch());
  }
  std::vector<testing::Message> Traffic(uint32_t seed) const {
    TrafficOptions options;
    options.space = GetParam().space;
    options.dimension = kDimension;
    options.messages = 20;
    options.bad_rows = false;
    return MakeTraffic(seed, options);
  }
  // Of rows that it has not seen.
  std::vector<Explanation> Explain(const LoneModel& lone, size_t limit = kAll) const {
    std::vector<Explanation> all;
    for (const testing::Message& message : Traffic(9)) {
      ExplainOutcome outcome;
      const SpaceBatch rows(GetParam().space, message.examples);
      EXPECT_OK(lone.model->Explain(rows.batch(), {}, {0, limit, {}}, outcome));
      all.insert(all.end(), outcome.explanations.begin(), outcome.explanations.end());
    }
    return all;
  }
};

TEST_P(ExplainBySupport, TheySumToTheScoreOrItSaysWhyNot) {
  LoneModel lone(Settings());
  Learn(lone, 1);
  ASSERT_GT(lone.model->revision(), 10U);
  size_t listed = 0;
  for (const size_t limit : {kAll, size_t{3}}) {
    for (const Explanation& explanation : Explain(lone, limit)) {
      if (!rule().no_dual.empty()) {
        EXPECT_EQ(explanation.support_absent, rule().no_dual);
        EXPECT_TRUE(explanation.support.empty());
        EXPECT_FALSE(explanation.support_complete);
        continue;
      }
      EXPECT_EQ(explanation.support_absent, "");
      EXPECT_TRUE(explanation.support_complete);
      EXPECT_FALSE(explanation.start_contribution.has_value());
      EXPECT_LE(explanation.support.size(), limit);
      EXPECT_NEAR(SumOfMistakes(explanation), explanation.score,
                  1e-5 * (1 + SizeOfMistakes(explanation)));
      listed += explanation.support.size();
    }
  }
  EXPECT_EQ(listed > 100, rule().no_dual.empty());
}

TEST_P(ExplainBySupport, ReplacedWeightsComeFirstAndOlderMistakesCountNoMore) {
  if (!is_replaceable() || !rule().no_dual.empty() || GetParam().space == Space::kNamed) return;
  v1::Model settings = Settings();
  // They would be as many again in the score.
  for (int i = 0; i < 3; ++i) {
    testing::StartingVector(*settings.mutable_learner()).add_indices(static_cast<uint32_t>(i));
    testing::StartingVector(*settings.mutable_learner()).add_values(static_cast<float>(7 * i));
  }
  LoneModel lone(settings);
  Learn(lone, 1);
  const NewWeights weights{{{{0, 2, 5}, {0.5F, -1.5F, 2}, 0.25F}}, {}, ~0U};
  const uint64_t replaced = lone.model->ReplaceWeights(weights, std::nullopt).value();
  for (const bool learned : {false, true}) {
    if (learned) Learn(lone, 2);
    ASSERT_EQ(lone.model->revision() > replaced, learned);
    // Without a feature the constant is left; with one, that weight too.
    for (const uint32_t feature : {0U, 1U, 2U, 5U}) {
      const Columns row = Columns().Add({feature}, {3}, 1);
      ExplainOutcome outcome;
      ASSERT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, {}}, outcome));
      const Explanation& explanation = outcome.explanations.at(0);
      EXPECT_EQ(explanation.start_revision, replaced);
      const double weight = feature == 0 ? 0.5 : feature == 2 ? -1.5 : feature == 5 ? 2 : 0;
      EXPECT_TRUE(explanation.support_complete);
      ASSERT_TRUE(explanation.start_contribution.has_value());
      EXPECT_NEAR(*explanation.start_contribution, 3 * weight + 0.25,
                  1e-5 * (1 + SizeOfMistakes(explanation)));
      EXPECT_EQ(explanation.support.empty(), !learned);
      for (const SupportContribution& mistake : explanation.support)
        EXPECT_GT(mistake.revision, replaced);
    }
  }
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  ASSERT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  const std::vector<Explanation> before = Explain(lone);
  lone.model =
      Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
          .value();
  const std::vector<Explanation> after = Explain(lone);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].start_revision, replaced);
    EXPECT_EQ(after[i].start_contribution, before[i].start_contribution);
  }
}

TEST_P(ExplainBySupport, StartingWeightsAreALineOfTheirOwn) {
  if (!rule().no_dual.empty() || rule().form != Form::kLinear || GetParam().space != Space::kDense)
    return;
  v1::Model settings = Settings();
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_indices(1);
  start.add_values(-2);
  start.set_bias(0.5);
  LoneModel lone(settings);
  Learn(lone, 1);
  const Columns row = Columns().Add({0, 1}, {1, 3}, 1);
  ExplainOutcome outcome;
  ASSERT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, {}}, outcome));
  const Explanation& explanation = outcome.explanations.at(0);
  EXPECT_EQ(explanation.start_contribution, -6 + 0.5);
  EXPECT_EQ(explanation.start_revision, 0U);
  EXPECT_NEAR(*explanation.start_contribution + SumOfMistakes(explanation), explanation.score,
              1e-5 * (1 + SizeOfMistakes(explanation)));
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainBySupport, ::testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return testing::TestName(info.param.kind) + "_" +
                                  testing::SpaceName(info.param.space);
                         });

Explanation ExplainOne(const LoneModel& lone, const Columns& row) {
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, {}}, outcome));
  return outcome.explanations.at(0);
}

// (1, 1)+ and (1, 0)- by the polynomial kernel (1 + x . z)^2 + b^2: the first is a mistake at a
// tie, the second since the first says K = 4 + 1 there.
TEST(ExplainKernel, EachExampleKeptContributesItsShareTimesTheKernel) {
  v1::Model settings = testing::DenseSettings("k", 2);
  settings.mutable_learner()->mutable_kernel_perceptron();
  settings.mutable_learner()
      ->mutable_kernel_perceptron()
      ->mutable_kernel()
      ->mutable_polynomial()
      ->set_degree(2);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 1}, 1).AddDense({1, 0}, -1).batch());
  ASSERT_EQ(lone.model->revision(), 2U);
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1, 2}, 1));
  EXPECT_NE(explanation.contributions_absent, "");
  EXPECT_TRUE(explanation.contributions.empty());
  ASSERT_EQ(explanation.support.size(), 2U);
  EXPECT_EQ(explanation.support[0].revision, 1U);
  EXPECT_EQ(explanation.support[0].label, 1);
  EXPECT_EQ(explanation.support[0].kernel, 16 + 1);
  EXPECT_EQ(explanation.support[0].contribution, 17);
  EXPECT_EQ(explanation.support[1].revision, 2U);
  EXPECT_EQ(explanation.support[1].label, -1);
  EXPECT_EQ(explanation.support[1].contribution, -(4 + 1));
  EXPECT_EQ(explanation.score, 12);
}

TEST(ExplainKernel, OnABudgetThoseThatAreLeftStillSumToTheScore) {
  v1::Model settings = testing::DenseSettings("k", 2);
  settings.mutable_learner()->mutable_kernel_perceptron();
  testing::SetCount(*settings.mutable_learner(), "budget", 4);
  LoneModel lone(settings);
  for (int i = 0; i < 40; ++i) {
    const auto x = static_cast<float>(i % 7) - 3;
    lone.Learn(Columns().AddDense({x, static_cast<float>(i % 3)}, i % 2 == 0 ? 1 : -1).batch());
  }
  ASSERT_GT(lone.model->revision(), 8U);
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1, 2}, 1));
  ASSERT_EQ(explanation.support.size(), 4U);
  uint64_t oldest = ~uint64_t{0};
  for (const SupportContribution& mistake : explanation.support)
    oldest = std::min(oldest, mistake.revision);
  EXPECT_EQ(oldest, lone.model->revision() - 3);
  EXPECT_NEAR(SumOfMistakes(explanation), explanation.score, 1e-12);
}

TEST(ExplainByFewer, ReplacedWeightsBelongToTheOriginAsUpdatesNoLongerStoredDo) {
  v1::Model settings = testing::DenseSettings("m", 1);
  settings.mutable_stored_examples()->set_max_updates(2);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).batch());
  ASSERT_OK(lone.model->ReplaceWeights({{{{0}, {1}, 0}}, {}, ~0U}, std::nullopt).status());
  const auto learn = [&](int32_t label) { lone.Learn(Columns().AddDense({5}, label).batch()); };
  learn(-1);
  EXPECT_TRUE(ExplainOne(lone, Columns().AddDense({1}, 1)).support_complete);
  EXPECT_EQ(ExplainOne(lone, Columns().AddDense({1}, 1)).start_contribution, 1);
  learn(1);
  learn(-1);
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1}, 1));
  EXPECT_EQ(explanation.support.size(), 2U);
  EXPECT_FALSE(explanation.support_complete);
  EXPECT_FALSE(explanation.start_contribution.has_value());
  EXPECT_EQ(explanation.start_revision, 2U);
}

TEST(ExplainByFewer, AModelThatStoresNoUpdatesSaysSo) {
  v1::Model settings = testing::DenseSettings("m", 1);
  settings.mutable_stored_examples()->set_max_updates(0);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).batch());
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1}, 1));
  EXPECT_NE(explanation.support_absent.find("stored_examples.max_updates"), std::string::npos);
  EXPECT_EQ(explanation.contributions.size(), 1U);
}

}  // namespace
}  // namespace perceptrond::support_examples_test
