// Scores of several classes by support examples: for every rule, every class's score is the sum of
// the updates that moved its weights, before and after a restart, or the answer says why it is not.
#include <algorithm>
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"

namespace perceptrond::classes_support_examples_test {
namespace {

using testing::ClassBatch;
using testing::ClassCase;
using testing::ClassKind;
using testing::Columns;
using testing::LoneModel;
using testing::Space;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 6;
constexpr uint32_t kDimension = 12;
constexpr size_t kAll = 1 << 20;

std::vector<ClassCase> Cases() {
  std::vector<ClassCase> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!entry.has_classes() || entry.form != Form::kLinear) continue;
    cases.push_back({entry.name, ClassKind::kFixed, Space::kDense});
    cases.push_back({entry.name, ClassKind::kNumbered, Space::kHashed});
    cases.push_back({entry.name, ClassKind::kNamed, Space::kNamed});
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

class ExplainClassesBySupport : public ::testing::TestWithParam<ClassCase> {
 protected:
  const CatalogueEntry& rule() const { return *FindLearner(GetParam().learner); }
  // Why the rule has no sum over support examples; empty: it has.
  std::string absent() const {
    return std::string(rule().no_dual.empty() ? rule().no_class_dual : rule().no_dual);
  }
  v1::Model Settings() const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "models/m", kDimension);
    testing::SetLearner(*settings.mutable_learner(), GetParam().learner);
    testing::SetClasses(GetParam().classes, kClasses, settings);
    if (GetParam().learner == "batch-perceptron")
      testing::SetCount(*settings.mutable_learner(), "mini_batch", 7);
    if (rule().takes_weights && GetParam().classes == ClassKind::kFixed) {
      for (int k = 0; k < kClasses; ++k)
        settings.mutable_learner()->add_class_weights(0.5 + 0.25 * k);
    }
    return settings;
  }
  // The last messages have one class: a long run, whose weights a pocket keeps.
  void Learn(LoneModel& lone, uint32_t seed) const {
    auto messages = testing::ClassMessages(seed, kClasses, kDimension, 15);
    std::reverse(messages.begin(), messages.end());
    for (const auto& message : messages) {
      const ClassBatch batch(GetParam().classes, GetParam().space, message);
      EXPECT_TRUE(lone.Learn(batch.batch()).row_errors.empty());
    }
  }
  // Of every class, for rows that the model has not seen.
  std::vector<Explanation> Explain(const LoneModel& lone, size_t limit = kAll) const {
    std::vector<Explanation> all;
    for (const auto& message : testing::ClassMessages(9, kClasses, kDimension, 5)) {
      const ClassBatch rows(GetParam().classes, GetParam().space, message);
      Batch asked = rows.batch();
      asked.labels = {};
      asked.label_names = {};
      for (int32_t k = 0; k < kClasses; ++k) {
        ExplainOutcome outcome;
        EXPECT_OK(lone.model->Explain(asked, {}, {0, limit, k}, outcome));
        all.insert(all.end(), outcome.explanations.begin(), outcome.explanations.end());
      }
    }
    return all;
  }
  void ExpectSums(const std::vector<Explanation>& all) const {
    size_t positive = 0;
    size_t negative = 0;
    for (const Explanation& explanation : all) {
      EXPECT_EQ(explanation.support_absent, absent());
      EXPECT_EQ(explanation.support_complete, absent().empty());
      for (const SupportContribution& one : explanation.support) {
        // An update adds its example to its own class and takes it from one other.
        EXPECT_EQ(one.label == explanation.label, one.dual_coefficient > 0);
        (one.dual_coefficient > 0 ? positive : negative) += 1;
      }
      if (!absent().empty()) continue;
      EXPECT_NEAR(Sum(explanation), explanation.score, 1e-5 * (1 + Size(explanation)));
    }
    EXPECT_EQ(positive > 100 && negative > 100, absent().empty());
  }
};

// Writes what is pending and loads the model from its journal.
void Restart(LoneModel& lone) {
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  ASSERT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  lone.model =
      Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
          .value();
}

void ExpectEqual(const std::vector<Explanation>& a, const std::vector<Explanation>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].score, b[i].score);
    EXPECT_EQ(a[i].start_contribution, b[i].start_contribution);
    EXPECT_EQ(a[i].support_complete, b[i].support_complete);
    ASSERT_EQ(a[i].support.size(), b[i].support.size());
    for (size_t j = 0; j < a[i].support.size(); ++j) {
      EXPECT_EQ(a[i].support[j].revision, b[i].support[j].revision);
      EXPECT_EQ(a[i].support[j].contribution, b[i].support[j].contribution);
    }
  }
}

// At most three are listed, and the others summed.
void ExpectFewer(const std::vector<Explanation>& some, const std::vector<Explanation>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_LE(some[i].support.size(), 3U);
    EXPECT_NEAR(Sum(some[i]), Sum(all[i]), 1e-9 * (1 + Size(all[i])));
    EXPECT_EQ(some[i].support.size() + some[i].other_support_count, all[i].support.size());
  }
}

// From records alone, from a snapshot that holds all updates, and from both.
TEST_P(ExplainClassesBySupport, EveryScoreIsASumAndStaysOneAfterARestart) {
  LoneModel lone(Settings());
  Learn(lone, 1);
  for (const bool snapshot : {false, true, false}) {
    const std::vector<Explanation> before = Explain(lone);
    ExpectSums(before);
    ExpectFewer(Explain(lone, 3), before);
    if (snapshot) ASSERT_OK(lone.journal.SaveSnapshot(lone.model->id(), MakeSnapshot(*lone.model)));
    Restart(lone);
    ExpectEqual(Explain(lone), before);
    if (snapshot) Learn(lone, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainClassesBySupport, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return testing::ClassCaseName(info.param); });

std::vector<SupportContribution> Support(const LoneModel& lone, const Columns& row, int32_t k) {
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, k}, outcome));
  EXPECT_TRUE(outcome.explanations.at(0).support_complete);
  return outcome.explanations.at(0).support;
}

// (1, 0) of class 1 is a mistake at a tie, its rival class 0; (0, 2) of class 2 then has class 1 as
// its rival, whose score is 1 by its bias.
TEST(ExplainClasses, AnUpdateCountsForItsClassAndAgainstItsRival) {
  v1::Model settings = testing::DenseSettings("m", 2);
  testing::SetClasses(ClassKind::kFixed, 4, settings);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 0}, 1).AddDense({0, 2}, 2).batch());
  ASSERT_EQ(lone.model->revision(), 2U);
  const Columns row = Columns().AddDense({3, 1}, 0);
  const std::vector<SupportContribution> first = Support(lone, row, 0);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].revision, 1U);
  EXPECT_EQ(first[0].label, 1);
  EXPECT_EQ(first[0].kernel, 3 + 1);
  EXPECT_EQ(first[0].contribution, -4);
  const std::vector<SupportContribution> second = Support(lone, row, 1);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].contribution, 4);
  EXPECT_EQ(second[1].label, 2);
  EXPECT_EQ(second[1].contribution, -(2 + 1));
  ASSERT_EQ(Support(lone, row, 2).size(), 1U);
  EXPECT_EQ(Support(lone, row, 2)[0].contribution, 2 + 1);
  EXPECT_TRUE(Support(lone, row, 3).empty());
}

TEST(ExplainClasses, ReplacedWeightsAreALineOfTheirOwn) {
  v1::Model settings = testing::DenseSettings("m", 2);
  testing::SetClasses(ClassKind::kFixed, 3, settings);
  LoneModel lone(settings);
  lone.Learn(Columns().AddDense({1, 0}, 1).batch());
  const NewWeights weights{{{{0}, {2}, 0.5F}, {{1}, {-1}, 0}}, {}, ~0U};
  const uint64_t replaced = lone.model->ReplaceWeights(weights, std::nullopt).value();
  lone.Learn(Columns().AddDense({4, 0}, 2).batch());
  ExplainOutcome outcome;
  const Columns row = Columns().AddDense({1, 1}, 0);
  ASSERT_OK(lone.model->Explain(row.unlabelled(), {}, {0, kAll, 0}, outcome));
  const Explanation& explanation = outcome.explanations.at(0);
  EXPECT_EQ(explanation.start_revision, replaced);
  EXPECT_EQ(explanation.start_contribution, 2 + 0.5);
  ASSERT_EQ(explanation.support.size(), 1U);
  EXPECT_EQ(explanation.support[0].contribution, -(4 + 1));
  EXPECT_EQ(explanation.score, 2.5 - 5);
}

}  // namespace
}  // namespace perceptrond::classes_support_examples_test
