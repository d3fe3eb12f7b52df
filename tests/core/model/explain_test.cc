// Explanations: their sums are the scores that predictions give, for every learner in every space
// under every feature map.
#include "core/model/explain.h"

#include <cmath>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond::explain_test {
namespace {

using testing::LoneModel;
using testing::NamedColumns;
using testing::Space;
using testing::SpaceBatch;
using testing::TrafficOptions;
namespace v1 = ::perceptron::v1;

constexpr size_t kAll = 1 << 20;

ExplainOutcome Explain(const LoneModel& lone, const Batch& batch, size_t max_features = kAll) {
  ExplainOutcome outcome;
  EXPECT_OK(lone.model->Explain(batch, {}, {0, max_features, {}}, outcome));
  EXPECT_TRUE(outcome.row_errors.empty());
  return outcome;
}

std::vector<v1::FeatureMap> Maps(Space space) {
  std::vector<v1::FeatureMap> maps(1);
  maps.emplace_back().mutable_polynomial()->set_degree(2);
  maps.emplace_back().mutable_polynomial()->set_degree(3);
  maps.back().mutable_polynomial()->set_interactions_only(true);
  v1::FeatureMap::Fourier& fourier = *maps.emplace_back().mutable_fourier();
  fourier.set_dimension(30);
  fourier.set_gamma(0.4);
  if (space != Space::kDense) maps.emplace_back().mutable_products()->add_pairs();
  return maps;
}

struct Case {
  std::string kind;
  Space space;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form != Form::kLinear) continue;
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
      cases.push_back({entry.name, space});
  }
  return cases;
}

class ExplainEvery : public ::testing::TestWithParam<Case> {
 protected:
  v1::Model Settings(const v1::FeatureMap& map) const {
    v1::Model settings = testing::SpaceSettings(GetParam().space, "m", 10);
    testing::SetLearner(*settings.mutable_learner(), GetParam().kind);
    // There are no passes here, at whose ends it would learn.
    if (GetParam().kind == "batch-perceptron")
      testing::SetCount(*settings.mutable_learner(), "mini_batch", 5);
    if (map.map_case() != v1::FeatureMap::MAP_NOT_SET)
      *settings.mutable_feature_space()->mutable_map() = map;
    // Room for products.
    if (GetParam().space == Space::kNamed)
      settings.mutable_feature_space()->mutable_named()->set_max_features(100'000);
    return settings;
  }
  std::vector<testing::Message> Traffic(uint32_t seed) const {
    TrafficOptions options;
    options.space = GetParam().space;
    options.dimension = 10;
    options.messages = 40;
    options.bad_rows = false;
    return MakeTraffic(seed, options);
  }
};

// Names that share a slot are added up in float32 for the score, and explained separately.
void ExpectSumIsScore(const Explanation& explanation, float predicted) {
  double sum = explanation.bias + explanation.other_contributions;
  double size = std::abs(explanation.bias) + std::abs(explanation.other_contributions);
  for (const Contribution& one : explanation.contributions) {
    EXPECT_EQ(one.contribution, one.weight * static_cast<double>(one.part.value));
    EXPECT_NE(one.contribution, 0);
    sum += one.contribution;
    size += std::abs(one.contribution);
  }
  EXPECT_EQ(static_cast<float>(explanation.score), predicted);
  EXPECT_NEAR(sum, explanation.score, 1e-6 * size);
}

TEST_P(ExplainEvery, ContributionsAndOffsetSumToThePredictedScore) {
  for (const v1::FeatureMap& map : Maps(GetParam().space)) {
    LoneModel lone(Settings(map));
    for (const testing::Message& message : Traffic(1))
      lone.Learn(SpaceBatch(GetParam().space, message.examples).batch());
    ASSERT_GT(lone.model->revision(), 5U);
    size_t listed = 0;
    for (const testing::Message& message : Traffic(2)) {
      const SpaceBatch examples(GetParam().space, message.examples);
      const PredictOutcome predicted = lone.Predict(examples.batch());
      for (const size_t max_features : {kAll, size_t{3}}) {
        const ExplainOutcome outcome = Explain(lone, examples.batch(), max_features);
        EXPECT_EQ(outcome.revision, predicted.revision);
        ASSERT_EQ(outcome.explanations.size(), message.examples.size());
        for (size_t i = 0; i < outcome.explanations.size(); ++i) {
          ExpectSumIsScore(outcome.explanations[i], predicted.scores[i]);
          EXPECT_EQ(outcome.explanations[i].label, predicted.labels[i]);
          EXPECT_LE(outcome.explanations[i].contributions.size(), max_features);
          listed += outcome.explanations[i].contributions.size();
        }
      }
    }
    EXPECT_GT(listed, 100U);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainEvery, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return testing::TestName(info.param.kind) + "_" + testing::SpaceName(info.param.space);
});

TEST(Explain, ScoresThatAreNoSumAreRefused) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.form != Form::kVotes) continue;
    v1::Model settings = testing::DenseSettings("m", 2);
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    const LoneModel lone(settings);
    const testing::Columns row = testing::Columns().AddDense({1, 1}, 1);
    ExplainOutcome outcome;
    const absl::Status status = lone.model->Explain(row.unlabelled(), {}, {0, 20, {}}, outcome);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << entry.name;
    EXPECT_EQ(testing::ReasonOf(status), "NOT_LINEAR");
  }
}

// w = (3, -5, 1, 0) with an offset of 2.
LoneModel Given() {
  v1::Model settings = testing::DenseSettings("m", 4);
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  start.add_indices(0);
  start.add_indices(1);
  start.add_indices(2);
  for (const float weight : {3.0F, -5.0F, 1.0F}) start.add_values(weight);
  start.set_bias(2);
  return LoneModel(settings);
}

TEST(Explain, ListsTheLargestFirstAndSumsUpTheRest) {
  const LoneModel lone = Given();
  const testing::Columns columns = testing::Columns().AddDense({1, 1, -4, 7}, 1);
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
  const Explanation first = Explain(lone, columns.unlabelled(), 1).explanations.at(0);
  ASSERT_EQ(first.contributions.size(), 1U);
  EXPECT_EQ(first.other_contributions, -1);
  EXPECT_EQ(first.other_features, 2U);
}

TEST(Explain, FeaturesOfOneSizeKeepTheirOrder) {
  const LoneModel lone = Given();
  const testing::Columns columns = testing::Columns().AddDense({1, 0, -3, 0}, 1);
  const Explanation explanation = Explain(lone, columns.unlabelled(), 1).explanations.at(0);
  EXPECT_EQ(explanation.contributions[0].part.index, 0U);
}

std::vector<std::string> Names(const Explanation& explanation) {
  std::vector<std::string> names;
  for (const Contribution& one : explanation.contributions) names.push_back(one.part.name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Explain, NamesAreTheRequestsOrThoseThatTheMapDerives) {
  const NamedColumns columns({{{{"b", 2}, {"a", 1}}, 1}});
  LoneModel named(testing::NamedSettings("m"));
  named.Learn(columns.batch());
  EXPECT_EQ(Names(Explain(named, columns.batch()).explanations[0]),
            (std::vector<std::string>{"a", "b"}));
  v1::Model settings = testing::NamedSettings("m");
  settings.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  LoneModel products(settings);
  products.Learn(columns.batch());
  EXPECT_EQ(Names(Explain(products, columns.batch()).explanations[0]),
            (std::vector<std::string>{"a", "a*a", "a*b", "b", "b*b"}));
}

TEST(Explain, ProductsOfNumberedFeaturesAreCalledByTheirFactors) {
  v1::Model settings = testing::DenseSettings("m", 3);
  settings.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  LoneModel lone(settings);
  const testing::Columns columns = testing::Columns().Add({0, 2}, {1, 3}, 1);
  lone.Learn(columns.batch());
  EXPECT_EQ(Names(Explain(lone, columns.unlabelled()).explanations[0]),
            (std::vector<std::string>{"0", "0*0", "0*2", "2", "2*2"}));
}

TEST(Explain, NamesThatShareASlotAreListedApart) {
  LoneModel lone(testing::HashedSettings("m", 1));
  const NamedColumns columns({{{{"a", 1}, {"b", 2}, {"c", 3}}, 1}});
  lone.Learn(columns.batch());
  const Explanation explanation = Explain(lone, columns.batch()).explanations[0];
  EXPECT_EQ(Names(explanation), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(Explain, NamesThatTheModelHasNoWeightForContributeNothing) {
  LoneModel lone(testing::NamedSettings("m"));
  lone.Learn(NamedColumns({{{{"a", 1}}, 1}}).batch());
  const NamedColumns columns({{{{"a", 1}, {"new", 9}}, 1}});
  EXPECT_EQ(Names(Explain(lone, columns.batch()).explanations[0]), (std::vector<std::string>{"a"}));
}

TEST(Explain, EndsAtTheFirstBadRowAndSaysWhich) {
  const LoneModel lone = Given();
  const testing::Columns columns = testing::Columns().Add({0}, {1}, 1).Add({9}, {1}, 1);
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
  const testing::Columns columns = testing::Columns().AddDense({1, 1, 1, 1}, 1);
  EXPECT_TRUE(absl::IsAborted(lone.model->Explain(columns.unlabelled(), {}, {7, 5, {}}, outcome)));
}

}  // namespace
}  // namespace perceptrond::explain_test
