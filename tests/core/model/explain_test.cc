// Explanations: for every learner, in every space, with every feature map, the contributions of the features and those
// of the support examples sum to the predicted score; where they cannot, the answer says why.
#include "core/model/explain.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"

namespace perceptrond::explain_test {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::LoneModel;
using testing::NamedColumns;
using testing::Space;
using testing::SpaceBatch;
namespace v1 = ::perceptron::v1;

constexpr size_t kAll = 1 << 20;
constexpr uint32_t kDimension = 10;
constexpr int kClasses = 6;

ExplainOutcome Explain(const LoneModel& lone, const Batch& batch, size_t limit = kAll,
                       std::optional<int32_t> label = {}) {
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(batch, {}, {0, limit, label}, outcome));
  EXPECT_TRUE(outcome.row_errors.empty());
  return outcome;
}

Explanation ExplainOne(const LoneModel& lone, const Columns& row,
                       std::optional<int32_t> label = {}) {
  return Explain(lone, row.unlabelled(), kAll, label).explanations.at(0);
}

double SumOfSupport(const Explanation& explanation) {
  double sum = explanation.other_support + explanation.start_contribution.value_or(0);
  for (const SupportContribution& one : explanation.support) sum += one.contribution;
  return sum;
}

double SizeOfSupport(const Explanation& explanation) {
  double size = std::abs(explanation.score) + std::abs(explanation.start_contribution.value_or(0));
  for (const SupportContribution& one : explanation.support) size += std::abs(one.contribution);
  return size;
}

// Names that share a slot are added up in float32 for the score, and explained separately.
void ExpectFeaturesSumToScore(const Explanation& explanation) {
  double sum = explanation.bias + explanation.other_contributions;
  double size = std::abs(explanation.bias) + std::abs(explanation.other_contributions);
  for (const Contribution& one : explanation.contributions) {
    EXPECT_EQ(one.contribution, one.weight * static_cast<double>(one.part.value));
    EXPECT_NE(one.contribution, 0);
    sum += one.contribution;
    size += std::abs(one.contribution);
  }
  EXPECT_NEAR(sum, explanation.score, 1e-6 * size);
}

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

class ExplainEvery : public ::testing::TestWithParam<Case> {
 protected:
  static const CatalogueEntry& rule() { return *GetParam().rule; }
  static bool has_classes() { return GetParam().classes.has_value(); }
  // Why the rule has no sum over support examples; empty: it has.
  static std::string absent() {
    return std::string(has_classes() && rule().no_dual.empty() ? rule().no_class_dual
                                                               : rule().no_dual);
  }
  static v1::Model Settings() {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "m", kDimension);
    v1::Learner& learner = *settings.mutable_learner();
    testing::SetLearner(learner, rule().name);
    if (rule().name == "batch-perceptron") testing::SetCount(learner, "mini_batch", 7);
    // Support examples go.
    testing::SetCount(learner, "budget", 12);
    if (has_classes()) testing::SetClasses(*GetParam().classes, kClasses, settings);
    const bool fixed = GetParam().classes.value_or(ClassKind::kFixed) == ClassKind::kFixed;
    if (!rule().takes_weights || !fixed) return settings;
    for (int k = 0; k < (has_classes() ? kClasses : 2); ++k)
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
    if (has_classes()) {
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
  // Compares explanations of rows that the model has not seen, for every class, with predictions and among one another.
  // Returns the number of support examples in them.
  static size_t Check(const LoneModel& lone, std::optional<uint64_t> replaced) {
    size_t listed = 0;
    for (const auto& batch : Traffic(9)) {
      Batch asked = batch->batch();
      asked.labels = {};
      asked.label_names = {};
      PredictOutcome predicted;
      EXPECT_OK(lone.model->Predict(asked, {}, 0, predicted, has_classes()));
      for (int32_t k = 0; k < (has_classes() ? kClasses : 1); ++k) {
        const std::optional<int32_t> label = has_classes() ? std::optional(k) : std::nullopt;
        const ExplainOutcome all = Explain(lone, asked, kAll, label);
        const ExplainOutcome some = Explain(lone, asked, 3, label);
        EXPECT_EQ(all.revision, predicted.revision);
        EXPECT_EQ(all.explanations.size(), asked.rows());
        for (size_t i = 0; i < all.explanations.size(); ++i) {
          const Explanation& one = all.explanations[i];
          const double tolerance = 1e-5 * (1 + SizeOfSupport(one));
          EXPECT_EQ(one.label, has_classes() ? k : predicted.labels[i]);
          EXPECT_NEAR(
              one.score,
              has_classes() ? predicted.class_scores[i * kClasses + k] : predicted.scores[i],
              tolerance);
          EXPECT_LE(some.explanations[i].contributions.size(), 3U);
          EXPECT_EQ(one.contributions_absent.empty(), rule().form == Form::kLinear);
          if (rule().form == Form::kLinear) {
            ExpectFeaturesSumToScore(one);
            ExpectFeaturesSumToScore(some.explanations[i]);
          }
          EXPECT_EQ(one.support_absent, absent());
          EXPECT_EQ(one.support_complete, absent().empty());
          EXPECT_EQ(one.start_contribution.has_value(), replaced.has_value());
          listed += one.support.size();
          if (absent().empty()) CheckSupport(one, some.explanations[i], replaced.value_or(0));
        }
      }
    }
    return listed;
  }
  static void CheckSupport(const Explanation& all, const Explanation& some, uint64_t replaced) {
    EXPECT_EQ(all.start_revision, replaced);
    EXPECT_NEAR(SumOfSupport(all), all.score, 1e-5 * (1 + SizeOfSupport(all)));
    EXPECT_LE(some.support.size(), 3U);
    EXPECT_NEAR(SumOfSupport(some), SumOfSupport(all), 1e-9 * (1 + SizeOfSupport(all)));
    EXPECT_EQ(some.support.size() + some.other_support_count, all.support.size());
    for (const SupportContribution& one : all.support) {
      EXPECT_GT(one.revision, replaced);
      EXPECT_EQ(one.contribution, one.dual_coefficient * one.kernel);
      // An update adds its example to its own class and takes it from one other.
      EXPECT_TRUE(!has_classes() || (one.label == all.label) == (one.dual_coefficient > 0));
    }
  }
};

TEST_P(ExplainEvery, FeaturesAndSupportExamplesSumToThePredictedScore) {
  LoneModel lone(Settings());
  Learn(lone, 1);
  ASSERT_GT(lone.model->revision(), 5U);
  EXPECT_EQ(Check(lone, std::nullopt) > 100, absent().empty());
  LearnerSettings kind;
  kind.rule = rule().rule;
  kind.wrapper = rule().wrapper;
  if (MakeLearner(kind, 1)->replaceable_weights() == nullptr || !absent().empty() ||
      GetParam().space == Space::kNamed || GetParam().classes == ClassKind::kNumbered)
    return;
  // Older support examples count no more.
  NewWeights weights{{{{0, 2, 5}, {0.5F, -1.5F, 2}, 0.25F}}, {}, ~0U};
  for (int k = 1; has_classes() && k < kClasses; ++k)
    weights.vectors.push_back({{1, 3}, {0.5F * static_cast<float>(k), -1}, -0.5F});
  const uint64_t replaced = lone.model->ReplaceWeights(weights, std::nullopt).value();
  EXPECT_EQ(Check(lone, replaced), 0U);
  Learn(lone, 2);
  ASSERT_GT(lone.model->revision(), replaced);
  EXPECT_GT(Check(lone, replaced), 0U);
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainEvery, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return CaseName(info.param); });

TEST(Explain, FeaturesThatAMapMakesSumToThePredictedScore) {
  for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed}) {
    std::vector<v1::FeatureMap> maps;
    maps.emplace_back().mutable_polynomial()->set_degree(2);
    maps.emplace_back().mutable_polynomial()->set_degree(3);
    maps.back().mutable_polynomial()->set_interactions_only(true);
    v1::FeatureMap::Fourier& fourier = *maps.emplace_back().mutable_fourier();
    fourier.set_dimension(30);
    fourier.set_gamma(0.4);
    if (space != Space::kDense) maps.emplace_back().mutable_products()->add_pairs();
    for (const v1::FeatureMap& map : maps) {
      v1::Model settings = testing::SpaceSettings(space, "m", kDimension);
      *settings.mutable_feature_space()->mutable_map() = map;
      if (space == Space::kNamed)
        settings.mutable_feature_space()->mutable_named()->set_max_features(100'000);
      LoneModel lone(settings);
      testing::TrafficOptions options;
      options.dimension = kDimension;
      options.bad_rows = false;
      for (const testing::Message& message : MakeTraffic(1, options))
        lone.Learn(SpaceBatch(space, message.examples).batch());
      for (const testing::Message& message : MakeTraffic(2, options)) {
        const SpaceBatch examples(space, message.examples);
        const PredictOutcome predicted = lone.Predict(examples.batch());
        const ExplainOutcome outcome = Explain(lone, examples.batch());
        for (size_t i = 0; i < outcome.explanations.size(); ++i) {
          ExpectFeaturesSumToScore(outcome.explanations[i]);
          EXPECT_EQ(static_cast<float>(outcome.explanations[i].score), predicted.scores[i]);
        }
      }
    }
  }
}

TEST(Explain, ScoresThatAreNoSumAreRefused) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form != Form::kVotes) continue;
    v1::Model settings = testing::DenseSettings("m", 2);
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    const LoneModel lone(settings);
    const Columns row = Columns().AddDense({1, 1}, 1);
    ExplainOutcome outcome;
    const absl::Status status = lone.model->Explain(row.unlabelled(), {}, {0, 20, {}}, outcome);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << entry.name;
    EXPECT_EQ(testing::ReasonOf(status), "NOT_LINEAR");
  }
}

// w = (3, -5, 1, 0) with an offset of 2.
LoneModel Given() {
  v1::Model settings = testing::DenseSettings("m", 4);
  v1::WeightVector& start = testing::StartingVector(*settings.mutable_learner());
  for (const uint32_t index : {0, 1, 2}) start.add_indices(index);
  for (const float weight : {3.0F, -5.0F, 1.0F}) start.add_values(weight);
  start.set_bias(2);
  return LoneModel(settings);
}

TEST(Explain, ListsTheLargestFirstAndSumsUpTheRest) {
  const LoneModel lone = Given();
  const Columns columns = Columns().AddDense({1, 1, -4, 7}, 1);
  const Explanation all = Explain(lone, columns.unlabelled()).explanations.at(0);
  EXPECT_EQ(all.score, 3 - 5 - 4 + 2);
  EXPECT_EQ(all.label, -1);
  EXPECT_EQ(all.bias, 2);
  ASSERT_EQ(all.contributions.size(), 3U);  // what weighs nothing says nothing
  EXPECT_EQ(all.contributions[0].contribution, -5);
  EXPECT_EQ(all.contributions[0].part.index, 1U);
  EXPECT_EQ(all.contributions[1].contribution, -4);
  EXPECT_EQ(all.contributions[1].part.value, -4);
  EXPECT_EQ(all.contributions[1].weight, 1);
  EXPECT_EQ(all.contributions[2].contribution, 3);
  EXPECT_EQ(all.other_features, 0U);
  // Features of one size keep their order.
  const Columns equal = Columns().AddDense({1, 0, -3, 0}, 1);
  EXPECT_EQ(Explain(lone, equal.unlabelled(), 1).explanations[0].contributions[0].part.index, 0U);
  const Explanation first = Explain(lone, columns.unlabelled(), 1).explanations.at(0);
  ASSERT_EQ(first.contributions.size(), 1U);
  EXPECT_EQ(first.other_contributions, -1);
  EXPECT_EQ(first.other_features, 2U);
}

std::vector<std::string> Names(const LoneModel& lone, const Batch& batch) {
  std::vector<std::string> names;
  const ExplainOutcome outcome = Explain(lone, batch);
  for (const Contribution& one : outcome.explanations.at(0).contributions)
    names.push_back(one.part.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Explain, NamesAreTheRequestsOrThoseThatTheMapDerives) {
  using List = std::vector<std::string>;
  const NamedColumns columns({{{{"b", 2}, {"a", 1}}, 1}});
  LoneModel named(testing::NamedSettings("m"));
  named.Learn(columns.batch());
  EXPECT_EQ(Names(named, columns.batch()), (List{"a", "b"}));
  // A name without a weight contributes nothing.
  const NamedColumns unknown({{{{"a", 1}, {"new", 9}}, 1}});
  EXPECT_EQ(Names(named, unknown.batch()), List{"a"});
  // Names that share a slot are listed apart.
  LoneModel hashed(testing::HashedSettings("m", 1));
  const NamedColumns three({{{{"a", 1}, {"b", 2}, {"c", 3}}, 1}});
  hashed.Learn(three.batch());
  EXPECT_EQ(Names(hashed, three.batch()), (List{"a", "b", "c"}));
  v1::Model settings = testing::NamedSettings("m");
  settings.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  LoneModel products(settings);
  products.Learn(columns.batch());
  EXPECT_EQ(Names(products, columns.batch()), (List{"a", "a*a", "a*b", "b", "b*b"}));
  settings.mutable_feature_space()->mutable_dense()->set_dimension(3);
  LoneModel numbered(settings);
  const Columns row = Columns().Add({0, 2}, {1, 3}, 1);
  numbered.Learn(row.batch());
  EXPECT_EQ(Names(numbered, row.unlabelled()), (List{"0", "0*0", "0*2", "2", "2*2"}));
}

TEST(Explain, ContributionsOfMoreBytesThanAskedForAreRefused) {
  LoneModel lone(testing::NamedSettings("m"));
  const std::string name(1000, 'n');
  const NamedColumns rows({{{{name, 1}}, 1}, {{{name, 2}}, 1}});
  lone.Learn(rows.batch());
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(rows.batch(), {}, {.max_bytes = 3000}, outcome));
  EXPECT_EQ(testing::ReasonOf(lone.model->Explain(rows.batch(), {}, {.max_bytes = 2000}, outcome)),
            "ANSWER_TOO_LARGE");
}

TEST(Explain, EndsAtTheFirstBadRowAndSaysWhich) {
  const LoneModel lone = Given();
  const Columns columns = Columns().Add({0}, {1}, 1).Add({9}, {1}, 1);
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(columns.unlabelled(), {}, {0, 5, {}}, outcome));
  ASSERT_EQ(outcome.row_errors.size(), 1U);
  EXPECT_EQ(outcome.row_errors[0].row, 1U);
  EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kIndexOutOfRange);
  const std::vector<RowError> before{{0, {ValidationCode::kBadName, "examples[0]", "bad"}}};
  EXPECT_OK(lone.model->Explain(columns.unlabelled(), before, {0, 5, {}}, outcome));
  EXPECT_EQ(outcome.row_errors[0].row, 0U);
}

TEST(Explain, AnOlderStateThanAskedForIsAborted) {
  const LoneModel lone = Given();
  ExplainOutcome outcome;
  const Columns columns = Columns().AddDense({1, 1, 1, 1}, 1);
  EXPECT_TRUE(absl::IsAborted(lone.model->Explain(columns.unlabelled(), {}, {7, 5, {}}, outcome)));
}

TEST(Explain, ALabelThatIsNoClassIsUnknown) {
  v1::Model settings = testing::DenseSettings("m", 2);
  testing::SetClasses(ClassKind::kFixed, 3, settings);
  const LoneModel lone(settings);
  const Columns row = Columns().AddDense({1, 0}, 1);
  ExplainOutcome outcome;
  EXPECT_EQ(testing::ReasonOf(lone.model->Explain(row.unlabelled(), {}, {0, 20, 99}, outcome)),
            "UNKNOWN_LABEL");
}

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
  EXPECT_EQ(SumOfSupport(explanation), explanation.score);
  // They count no more once the weights are replaced.
  ASSERT_OK(lone.model->ReplaceWeights({{{{0}, {4}, 0}}, {}, ~0U}, std::nullopt).status());
  EXPECT_EQ(ExplainOne(lone, Columns().AddDense({1, 3}, 1)).start_contribution, 4);
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

}  // namespace
}  // namespace perceptrond::explain_test
