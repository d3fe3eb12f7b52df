// Every learner and every feature map through the store: what it learned, and what it answers, is
// there again to the bit after the server was away, from records and from snapshots.
#include <bit>

#include "core/journal/rocksdb_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tight.h"
#include "tests/support/traffic.h"

namespace perceptrond::rules_recovery_test {
namespace {

using testing::Message;
using testing::Space;
using testing::StateBytes;
using testing::TrafficOptions;
namespace v1 = ::perceptron::v1;

enum class Map { kIdentity, kPolynomial, kProducts, kFourier };

struct Case {
  std::string kind;
  Map map;
  Space space;
  // Of what the rule keeps so little that batches end and rows go; another kernel.
  bool tight = false;
};

const char* MapName(Map map) {
  constexpr const char* kNames[] = {"Identity", "Polynomial", "Products", "Fourier"};
  return kNames[static_cast<int>(map)];
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return testing::TestName(info.param.kind) + "_" + MapName(info.param.map) + "_" +
         testing::SpaceName(info.param.space) + (info.param.tight ? "_Tight" : "");
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind; }

// Each learner in each space; the perceptron and the one with most state under each map.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed}) {
    for (const CatalogueEntry& entry : Catalogue()) {
      const auto kind = entry.name;
      cases.push_back({kind, Map::kIdentity, space});
      if (testing::CanBeTight(entry.name))
        cases.push_back({kind, Map::kIdentity, space, /*tight=*/true});
    }
    for (const std::string& kind : testing::LogisticWithSteps())
      cases.push_back({kind, Map::kIdentity, space});
    for (const std::string kind : {"perceptron", "averaged-perceptron"}) {
      cases.push_back({kind, Map::kPolynomial, space});
      cases.push_back({kind, Map::kFourier, space});
      // Products are of names.
      if (space != Space::kDense) cases.push_back({kind, Map::kProducts, space});
    }
  }
  return cases;
}

class RulesRecovery : public ::testing::TestWithParam<Case> {
 protected:
  v1::Model Settings() const {
    v1::Model settings =
        testing::SpaceSettings(GetParam().space, "models/m", TrafficOptions().dimension);
    testing::SetLearner(*settings.mutable_learner(), GetParam().kind);
    if (GetParam().tight) testing::Tighten(*settings.mutable_learner());
    v1::FeatureMap& map = *settings.mutable_feature_space()->mutable_map();
    switch (GetParam().map) {
      case Map::kIdentity:
        settings.mutable_feature_space()->clear_map();
        break;
      case Map::kPolynomial:
        map.mutable_polynomial()->set_degree(2);
        break;
      case Map::kProducts:
        // All names of the traffic are of the default group.
        map.mutable_products()->add_pairs();
        break;
      case Map::kFourier:
        map.mutable_fourier()->set_dimension(40);
        map.mutable_fourier()->set_gamma(0.3);
        map.mutable_fourier()->set_seed(5);
        break;
    }
    return settings;
  }
  std::unique_ptr<Store> Open(uint64_t snapshot_bytes, size_t memory = size_t{1} << 30) {
    RocksDbJournal::Options journal;
    journal.directory = directory_.path();
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    options.memory_budget = memory;
    return std::make_unique<Store>(RocksDbJournal::Open(journal).value(), options);
  }
  std::vector<Message> Traffic(uint32_t seed) const {
    TrafficOptions traffic;
    traffic.space = GetParam().space;
    return MakeTraffic(seed, traffic);
  }
  // Every bit that it answers with.
  std::vector<uint32_t> Answers(Store& store) const {
    std::vector<uint32_t> bits;
    const std::shared_ptr<Model> model = store.Acquire("models/m").value();
    for (const Message& message : Traffic(2)) {
      PredictOutcome outcome;
      EXPECT_OK(model->Predict(testing::SpaceBatch(GetParam().space, message.examples).batch(), {},
                               0, outcome));
      for (const float score : outcome.scores) bits.push_back(std::bit_cast<uint32_t>(score));
      for (const float far : outcome.distances) bits.push_back(std::bit_cast<uint32_t>(far));
      ExplainOutcome explained;
      if (!model
               ->Explain(testing::SpaceBatch(GetParam().space, message.examples).batch(), {},
                         {0, 1000, {}}, explained)
               .ok())
        continue;
      for (const Explanation& explanation : explained.explanations) {
        for (const SupportContribution& mistake : explanation.support)
          bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(mistake.contribution)));
      }
    }
    return bits;
  }

  testing::TempDir directory_;
};

TEST_P(RulesRecovery, ComesBackToTheBit) {
  int64_t passes = 0;
  // All in records, or in snapshots as often as can be.
  for (const uint64_t snapshot_bytes : {uint64_t{1} << 40, uint64_t{1}}) {
    std::unique_ptr<Store> store = Open(snapshot_bytes);
    if (!store->Get("models/m").ok()) ASSERT_OK(store->Create(Settings(), "", false).status());
    uint64_t updates = 0;
    for (const Message& message : Traffic(1)) {
      const testing::Sent sent = testing::Send(
          *store, "models/m", "p", testing::SpaceBatch(GetParam().space, message.examples).batch(),
          std::nullopt, message.completed_pass > 0 ? ++passes : 0);
      ASSERT_OK(sent.status);
      updates += sent.outcome.updated_rows.size();
    }
    ASSERT_GT(updates, 5U);
    const std::string state = StateBytes(**store->Acquire("models/m"));
    const std::vector<uint32_t> answers = Answers(*store);
    store.reset();
    store = Open(snapshot_bytes);
    EXPECT_EQ(StateBytes(**store->Acquire("models/m")), state);
    EXPECT_EQ(Answers(*store), answers);
  }
}

TEST_P(RulesRecovery, AModelThatLeftMemoryBetweenMessagesEndsWithTheSameBits) {
  // No room for any model: the next one that is loaded drives it out, once its commit has let go.
  const std::unique_ptr<Store> store = Open(uint64_t{1} << 40, 1);
  ASSERT_OK(store->Create(Settings(), "", false).status());
  for (const char* other : {"models/x", "models/y"})
    ASSERT_OK(store->Create(testing::DenseSettings(other, 2), "", false).status());
  // Learns the same, and never leaves.
  testing::LoneModel twin(Settings());
  std::vector<Message> messages = Traffic(3);
  messages.resize(25);
  for (const Message& message : messages) {
    const testing::SpaceBatch batch(GetParam().space, message.examples);
    ASSERT_OK(
        testing::Send(*store, "models/m", "p", batch.batch(), std::nullopt, message.completed_pass)
            .status);
    twin.Learn(batch.batch(), message.completed_pass);
    do {
      for (const char* other : {"models/x", "models/y"}) ASSERT_OK(store->Acquire(other).status());
    } while (store->stats().models_in_memory > 1);
  }
  EXPECT_GE(store->stats().evictions, messages.size());
  EXPECT_EQ(StateBytes(**store->Acquire("models/m")), StateBytes(*twin.model));
}

INSTANTIATE_TEST_SUITE_P(Cases, RulesRecovery, ::testing::ValuesIn(Cases()), CaseName);

TEST(FeatureMaps, XorIsLearnedInFourUpdatesWithTheProductOfItsInputs) {
  v1::Model settings = testing::DenseSettings("xor", 2);
  v1::FeatureMap::Polynomial& map =
      *settings.mutable_feature_space()->mutable_map()->mutable_polynomial();
  map.set_degree(2);
  map.set_interactions_only(true);
  testing::LoneModel lone(settings);
  const testing::Columns columns = testing::Columns()
                                       .AddDense({-1, -1}, 1)
                                       .AddDense({1, 1}, 1)
                                       .AddDense({-1, 1}, -1)
                                       .AddDense({1, -1}, -1);
  EXPECT_EQ(lone.Learn(columns.batch(), 1).updated_rows.size(), 4U);
  EXPECT_TRUE(lone.Learn(columns.batch(), 2).pass->converged());
  EXPECT_EQ(lone.Weights(3), (std::vector<float>{0, 0, 4}));
  EXPECT_EQ(lone.Offset(), 0);
}

TEST(FeatureMaps, SettingsOutOfRangeNameTheirField) {
  const auto field = [](const std::function<void(v1::FeatureMap&)>& change) {
    v1::Model settings = testing::DenseSettings("m", 3);
    change(*settings.mutable_feature_space()->mutable_map());
    FillDefaults(settings);
    return std::string(ReadSettings(settings).status().message());
  };
  EXPECT_NE(field([](v1::FeatureMap& map) {
              map.mutable_polynomial()->set_degree(9);
            }).find("model.feature_space.map.polynomial.degree"),
            std::string::npos);
  EXPECT_NE(field([](v1::FeatureMap& map) {
              map.mutable_fourier()->set_dimension(5);
            }).find("model.feature_space.map.fourier.gamma"),
            std::string::npos);
  EXPECT_NE(field([](v1::FeatureMap& map) {
              map.mutable_products()->add_pairs();
            }).find("model.feature_space.map.products"),
            std::string::npos);
}

TEST(LearnerSettings, ASettingOutOfRangeIsRefused) {
  const auto problem = [](const std::string& kind,
                          const std::function<void(v1::Learner&)>& change) {
    v1::Model settings = testing::DenseSettings("m", 3);
    testing::SetLearner(*settings.mutable_learner(), kind);
    change(*settings.mutable_learner());
    FillDefaults(settings);
    return std::string(ReadSettings(settings).status().message());
  };
  EXPECT_EQ(problem("passive-aggressive", [](v1::Learner&) {}), "");
  EXPECT_EQ(problem("arow",
                    [](v1::Learner& learner) { testing::SetNumber(learner, "regularization", 0); }),
            "model.learner.arow.regularization: 0 is not above 0 and finite");
  EXPECT_EQ(
      problem("arow",
              [](v1::Learner& learner) {
                learner.add_class_weights(1);
                learner.add_class_weights(2);
              }),
      "model.learner.class_weights: the learner arow has no weights of examples; leave them out, "
      "or choose a learner that has them: perceptron, passive-aggressive-i, passive-aggressive-ii, "
      "logistic-regression, batch-perceptron, soft-confidence-weighted");
}

}  // namespace
}  // namespace perceptrond::rules_recovery_test
