// The largest weights: those of the whole list, of every learner, in every space, and while others
// learn.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::ClassKind;
using testing::Columns;
using testing::LoneModel;
using testing::Space;
namespace v1 = ::perceptron::v1;

struct Weight {
  std::string feature;
  float value;

  bool operator==(const Weight&) const = default;
};

std::vector<Weight> Weights(const WeightList& list) {
  std::vector<Weight> weights;
  for (size_t i = 0; i < list.values.size(); ++i) {
    weights.push_back(
        {list.names.empty() ? absl::StrCat(list.indices[i]) : list.names[i], list.values[i]});
  }
  return weights;
}

// Sorted by their size: the list is by index, and equals stay in that order.
std::vector<Weight> TopWeightsOf(const WeightList& list, size_t limit) {
  std::vector<Weight> weights = Weights(list);
  std::stable_sort(weights.begin(), weights.end(), [](const Weight& a, const Weight& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  weights.resize(std::min(weights.size(), limit));
  return weights;
}

class TopWeightsOfLearner
    : public ::testing::TestWithParam<std::tuple<const CatalogueEntry*, Space>> {
 protected:
  const CatalogueEntry& entry() const { return *std::get<0>(GetParam()); }
  Space space() const { return std::get<1>(GetParam()); }
};

TEST_P(TopWeightsOfLearner, AreThoseOfTheWholeList) {
  testing::TrafficOptions traffic;
  traffic.space = space();
  traffic.bad_rows = false;
  v1::Model settings = testing::SpaceSettings(space(), "models/m", traffic.dimension);
  testing::SetLearner(*settings.mutable_learner(), entry().name);
  LoneModel lone(settings);
  for (const testing::Message& message : testing::MakeTraffic(1, traffic))
    lone.Learn(testing::SpaceBatch(space(), message.examples).batch());
  if (entry().form != Form::kLinear) {
    EXPECT_TRUE(ListWeights(*lone.model).empty());
    EXPECT_TRUE(FindTopWeights(*lone.model, 5).lists.empty());
    return;
  }
  const WeightList all = ListWeights(*lone.model)[0];
  for (const size_t limit : {1, 5, 1000}) {
    const TopWeights top = FindTopWeights(*lone.model, limit);
    ASSERT_EQ(top.lists.size(), 1U);
    EXPECT_EQ(Weights(top.lists[0]), TopWeightsOf(all, limit));
    // The whole list's is in float32.
    EXPECT_NEAR(top.lists[0].bias, all.bias, 1e-6 * std::abs(all.bias));
    EXPECT_EQ(top.lists[0].revision, all.revision);
    EXPECT_EQ(top.last_revision, all.revision);
  }
  EXPECT_GT(lone.model->revision(), 50U);
}

class TopWeightsOfClasses : public TopWeightsOfLearner {};

TEST_P(TopWeightsOfClasses, AreThoseOfEachClassesList) {
  constexpr int kClasses = 6;
  v1::Model settings = testing::SpaceSettings(space(), "models/m", 12);
  testing::SetLearner(*settings.mutable_learner(), entry().name);
  testing::SetClasses(ClassKind::kNamed, kClasses, settings);
  LoneModel lone(settings);
  EXPECT_TRUE(FindTopWeights(*lone.model, 3).lists.empty());
  for (const auto& examples : testing::ClassMessages(2, kClasses, 12, 60))
    lone.Learn(testing::ClassBatch(ClassKind::kNamed, space(), examples).batch());
  const std::vector<WeightList> all = ListWeights(*lone.model);
  const TopWeights top = FindTopWeights(*lone.model, 4);
  if (entry().form != Form::kLinear) {
    EXPECT_TRUE(all.empty());
    EXPECT_TRUE(top.lists.empty());
    return;
  }
  ASSERT_EQ(all.size(), static_cast<size_t>(kClasses));
  ASSERT_EQ(top.lists.size(), all.size());
  for (size_t k = 0; k < top.lists.size(); ++k) {
    EXPECT_EQ(Weights(top.lists[k]), TopWeightsOf(all[k], 4)) << k;
    EXPECT_NEAR(top.lists[k].bias, all[k].bias, 1e-5) << k;
  }
}

std::vector<const CatalogueEntry*> Entries(bool is_multiclass) {
  std::vector<const CatalogueEntry*> entries;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!is_multiclass || entry.has_classes()) entries.push_back(&entry);
  }
  return entries;
}

std::string CaseName(
    const ::testing::TestParamInfo<std::tuple<const CatalogueEntry*, Space>>& info) {
  std::string name(std::get<0>(info.param)->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + testing::SpaceName(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, TopWeightsOfLearner,
                         ::testing::Combine(::testing::ValuesIn(Entries(false)),
                                            ::testing::Values(Space::kDense, Space::kNamed)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(All, TopWeightsOfClasses,
                         ::testing::Combine(::testing::ValuesIn(Entries(true)),
                                            ::testing::Values(Space::kDense, Space::kNamed)),
                         CaseName);

// Several stretches long, and each row's weight is its own: a weight is what its example taught, or
// nothing.
TEST(TopWeights, AreFoundWhileOthersLearnThem) {
  constexpr uint32_t kDimension = 200'000;
  constexpr uint32_t kTaught = 2'000;
  constexpr uint32_t kStep = kDimension / kTaught;
  LoneModel lone(testing::DenseSettings("models/m", kDimension));
  std::atomic<bool> done = false;
  std::thread learner([&] {
    for (uint32_t i = 0; i < kTaught; ++i) {
      const float value = static_cast<float>(i + 1);
      // Whatever came before, the offset is small beside it: each is a mistake, or right by
      // nothing.
      lone.Learn(Columns().Add({i * kStep}, {value}, i % 2 == 0 ? 1 : -1).batch());
    }
    done = true;
  });
  bool last = false;
  while (!last) {
    last = done;
    const TopWeights top = FindTopWeights(*lone.model, 50);
    ASSERT_EQ(top.lists.size(), 1U);
    const WeightList& list = top.lists[0];
    EXPECT_LE(list.revision, top.last_revision);
    for (size_t i = 0; i < list.values.size(); ++i) {
      EXPECT_EQ(list.indices[i] % kStep, 0U);
      EXPECT_EQ(std::abs(list.values[i]), static_cast<float>(list.indices[i] / kStep + 1));
      EXPECT_TRUE(i == 0 || std::abs(list.values[i]) < std::abs(list.values[i - 1]));
    }
  }
  learner.join();
  const TopWeights top = FindTopWeights(*lone.model, 50);
  EXPECT_EQ(top.lists[0].values.size(), 50U);
  EXPECT_EQ(Weights(top.lists[0]), TopWeightsOf(ListWeights(*lone.model)[0], 50));
  EXPECT_EQ(top.last_revision, lone.model->revision());
}

}  // namespace
}  // namespace perceptrond
