// Scores by support examples: of every rule, in every space and form of classes, they and the weights that they came on
// top of sum to the score; where they cannot, the answer says why.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"

namespace perceptrond::support_examples_test {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::LoneModel;
using testing::Space;
namespace v1 = ::perceptron::v1;

constexpr size_t kAll = 1 << 20;
constexpr uint32_t kDimension = 10;
constexpr int kClasses = 6;

struct Case {
  const CatalogueEntry* rule;
  Space space;
  // Absent: two labels.
  std::optional<ClassKind> classes;
};

std::string CaseName(const Case& one) {
  return absl::StrCat(testing::TestName(one.rule->name), "_", testing::SpaceName(one.space), "_",
                      one.classes.has_value() ? testing::ClassKindName(*one.classes) : "TwoLabels");
}

void PrintTo(const Case& one, std::ostream* out) { *out << CaseName(one); }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& rule : Catalogue()) {
    if (rule.form == Form::kVotes) continue;
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
      cases.push_back({&rule, space, std::nullopt});
    if (!rule.has_classes() || rule.form != Form::kLinear) continue;
    cases.push_back({&rule, Space::kDense, ClassKind::kFixed});
    cases.push_back({&rule, Space::kHashed, ClassKind::kNumbered});
    cases.push_back({&rule, Space::kNamed, ClassKind::kNamed});
  }
  return cases;
}

double Sum(const Explanation& explanation) {
  double sum = explanation.other_support + explanation.start_contribution.value_or(0);
  for (const SupportContribution& one : explanation.support) sum += one.contribution;
  return sum;
}

double Size(const Explanation& explanation) {
  double size = std::abs(explanation.score) + std::abs(explanation.start_contribution.value_or(0));
  for (const SupportContribution& one : explanation.support) size += std::abs(one.contribution);
  return size;
}

Explanation ExplainOne(const LoneModel& lone, const Columns& row,
                       std::optional<int32_t> label = {}) {
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, label}, outcome));
  return outcome.explanations.at(0);
}

class ExplainBySupport : public ::testing::TestWithParam<Case> {
 protected:
  const CatalogueEntry& rule() const { return *GetParam().rule; }
  // Why the rule has no sum over support examples; empty: it has.
  std::string absent() const {
    return std::string(GetParam().classes.has_value() && rule().no_dual.empty()
                           ? rule().no_class_dual
                           : rule().no_dual);
  }
  v1::Model Settings() const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "m", kDimension);
    v1::Learner& learner = *settings.mutable_learner();
    testing::SetLearner(learner, rule().name);
    if (rule().name == "batch-perceptron") testing::SetCount(learner, "mini_batch", 7);
    if (GetParam().classes.has_value())
      testing::SetClasses(*GetParam().classes, kClasses, settings);
    const bool fixed = GetParam().classes.value_or(ClassKind::kFixed) == ClassKind::kFixed;
    if (!rule().takes_weights || !fixed) return settings;
    for (int k = 0; k < (GetParam().classes.has_value() ? kClasses : 2); ++k)
      learner.add_class_weights(0.5 + 0.25 * k);
    return settings;
  }
  // The last messages of several classes have one: a long run, whose weights a pocket keeps.
  static std::vector<std::unique_ptr<testing::ClassBatch>> Traffic(uint32_t seed) {
    std::vector<std::unique_ptr<testing::ClassBatch>> batches;
    const auto add = [&](const std::vector<testing::SvmExample>& examples) {
      batches.push_back(std::make_unique<testing::ClassBatch>(
          GetParam().classes.value_or(ClassKind::kFixed), GetParam().space, examples));
    };
    if (GetParam().classes.has_value()) {
      auto messages = testing::ClassMessages(seed, kClasses, kDimension, 30);
      std::for_each(messages.rbegin(), messages.rend(), add);
      return batches;
    }
    testing::TrafficOptions options;
    options.dimension = kDimension;
    options.messages = 20;
    options.bad_rows = false;
    for (const testing::Message& message : MakeTraffic(seed, options)) add(message.examples);
    return batches;
  }
  static void Learn(LoneModel& lone, uint32_t seed) {
    for (const auto& batch : Traffic(seed))
      EXPECT_TRUE(lone.Learn(batch->batch()).row_errors.empty());
  }
  // Of rows that the model has not seen, for every class.
  static std::vector<Explanation> Explain(const LoneModel& lone, size_t limit) {
    std::vector<Explanation> all;
    for (const auto& batch : Traffic(9)) {
      Batch asked = batch->batch();
      asked.labels = {};
      asked.label_names = {};
      for (int32_t k = 0; k < (GetParam().classes.has_value() ? kClasses : 1); ++k) {
        ExplainOptions options{0, limit, {}};
        if (GetParam().classes.has_value()) options.label = k;
        ExplainOutcome outcome;
        EXPECT_OK(lone.model->Explain(asked, {}, options, outcome));
        all.insert(all.end(), outcome.explanations.begin(), outcome.explanations.end());
      }
    }
    return all;
  }
};

TEST_P(ExplainBySupport, TheySumToTheScoreOrItSaysWhyNot) {
  LoneModel lone(Settings());
  Learn(lone, 1);
  ASSERT_GT(lone.model->revision(), 10U);
  const std::vector<Explanation> all = Explain(lone, kAll);
  const std::vector<Explanation> some = Explain(lone, 3);
  size_t listed = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].support_absent, absent());
    EXPECT_EQ(all[i].support_complete, absent().empty());
    EXPECT_FALSE(all[i].start_contribution.has_value());
    listed += all[i].support.size();
    if (!absent().empty()) continue;
    EXPECT_NEAR(Sum(all[i]), all[i].score, 1e-5 * (1 + Size(all[i])));
    EXPECT_LE(some[i].support.size(), 3U);
    EXPECT_NEAR(Sum(some[i]), Sum(all[i]), 1e-9 * (1 + Size(all[i])));
    EXPECT_EQ(some[i].support.size() + some[i].other_support_count, all[i].support.size());
    if (!GetParam().classes.has_value()) continue;
    // An update adds its example to its own class and takes it from one other.
    for (const SupportContribution& one : all[i].support)
      EXPECT_EQ(one.label == all[i].label, one.dual_coefficient > 0);
  }
  EXPECT_EQ(listed > 100, absent().empty());
}

TEST_P(ExplainBySupport, ReplacedWeightsComeFirstAndOlderMistakesCountNoMore) {
  LearnerSettings kind;
  kind.rule = rule().rule;
  kind.wrapper = rule().wrapper;
  if (MakeLearner(kind, 1)->replaceable_weights() == nullptr || !absent().empty() ||
      GetParam().space == Space::kNamed || GetParam().classes.has_value())
    return;
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
      const Explanation explanation = ExplainOne(lone, Columns().Add({feature}, {3}, 1));
      EXPECT_EQ(explanation.start_revision, replaced);
      const double weight = feature == 0 ? 0.5 : feature == 2 ? -1.5 : feature == 5 ? 2 : 0;
      EXPECT_TRUE(explanation.support_complete);
      ASSERT_TRUE(explanation.start_contribution.has_value());
      EXPECT_NEAR(*explanation.start_contribution, 3 * weight + 0.25,
                  1e-5 * (1 + Size(explanation)));
      EXPECT_EQ(explanation.support.empty(), !learned);
      for (const SupportContribution& mistake : explanation.support)
        EXPECT_GT(mistake.revision, replaced);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainBySupport, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return CaseName(info.param); });

TEST(ExplainSupport, StartingWeightsAreALineOfTheirOwn) {
  v1::Model settings = testing::DenseSettings("m", 2);
  v1::WeightVector& start = testing::StartingVector(*settings.mutable_learner());
  start.add_indices(1);
  start.add_values(-2);
  start.set_bias(0.5);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 2}, 1).AddDense({2, -3}, -1).batch());
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1, 3}, 1));
  EXPECT_EQ(explanation.start_contribution, -6 + 0.5);
  EXPECT_EQ(explanation.start_revision, 0U);
  EXPECT_FALSE(explanation.support.empty());
  EXPECT_EQ(Sum(explanation), explanation.score);
}

// (1, 1)+ and (1, 0)- by the polynomial kernel (1 + x . z)^2 + b^2: the first is a mistake at a
// tie, the second since the first says K = 4 + 1 there.
TEST(ExplainSupport, OfAKernelIsItsShareTimesTheKernel) {
  v1::Model settings = testing::DenseSettings("k", 2);
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

TEST(ExplainSupport, OnAKernelsBudgetThoseThatAreLeftStillSumToTheScore) {
  v1::Model settings = testing::DenseSettings("k", 2);
  settings.mutable_learner()->mutable_kernel_perceptron()->set_budget(4);
  LoneModel lone(settings);
  for (int i = 0; i < 40; ++i) {
    const auto x = static_cast<float>(i % 7) - 3;
    lone.Learn(Columns().AddDense({x, static_cast<float>(i % 3)}, i % 2 == 0 ? 1 : -1).batch());
  }
  ASSERT_GT(lone.model->revision(), 8U);
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1, 2}, 1));
  ASSERT_EQ(explanation.support.size(), 4U);
  for (const SupportContribution& mistake : explanation.support)
    EXPECT_GE(mistake.revision, lone.model->revision() - 3);
  EXPECT_NEAR(Sum(explanation), explanation.score, 1e-12);
}

TEST(ExplainSupport, ReplacedWeightsBelongToTheOriginAsUpdatesNoLongerStoredDo) {
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

TEST(ExplainSupport, AModelThatStoresNoUpdatesSaysSo) {
  v1::Model settings = testing::DenseSettings("m", 1);
  settings.mutable_stored_examples()->set_max_updates(0);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1}, 1).batch());
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1}, 1));
  EXPECT_NE(explanation.support_absent.find("stored_examples.max_updates"), std::string::npos);
  EXPECT_EQ(explanation.contributions.size(), 1U);
}

// (1, 0) of class 1 is a mistake at a tie, its rival class 0; (0, 2) of class 2 then has class 1 as
// its rival, whose score is 1 by its bias.
TEST(ExplainSupport, AnUpdateCountsForItsClassAndAgainstItsRival) {
  v1::Model settings = testing::DenseSettings("m", 2);
  testing::SetClasses(ClassKind::kFixed, 4, settings);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 0}, 1).AddDense({0, 2}, 2).batch());
  ASSERT_EQ(lone.model->revision(), 2U);
  const Columns row = Columns().AddDense({3, 1}, 0);
  const auto contributions = [&](int32_t k) {
    std::vector<std::pair<int32_t, double>> list;
    for (const SupportContribution& one : ExplainOne(lone, row, k).support)
      list.emplace_back(one.label, one.contribution);
    return list;
  };
  using List = std::vector<std::pair<int32_t, double>>;
  EXPECT_EQ(contributions(0), (List{{1, -4}}));
  EXPECT_EQ(contributions(1), (List{{1, 4}, {2, -(2 + 1)}}));
  EXPECT_EQ(contributions(2), (List{{2, 2 + 1}}));
  EXPECT_EQ(contributions(3), List());
}

TEST(ExplainSupport, ReplacedWeightsOfAClassAreALineOfTheirOwn) {
  v1::Model settings = testing::DenseSettings("m", 2);
  testing::SetClasses(ClassKind::kFixed, 3, settings);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 0}, 1).batch());
  const NewWeights weights{{{{0}, {2}, 0.5F}, {{1}, {-1}, 0}}, {}, ~0U};
  const uint64_t replaced = lone.model->ReplaceWeights(weights, std::nullopt).value();
  lone.Learn(Columns().AddDense({4, 0}, 2).batch());
  const Explanation explanation = ExplainOne(lone, Columns().AddDense({1, 1}, 0), 0);
  EXPECT_EQ(explanation.start_revision, replaced);
  EXPECT_EQ(explanation.start_contribution, 2 + 0.5);
  ASSERT_EQ(explanation.support.size(), 1U);
  EXPECT_EQ(explanation.support[0].contribution, -(4 + 1));
  EXPECT_EQ(explanation.score, 2.5 - 5);
}

}  // namespace
}  // namespace perceptrond::support_examples_test
