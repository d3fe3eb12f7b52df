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
std::vector<Weight> TopWeightsOfList(const WeightList& list, size_t limit) {
  std::vector<Weight> weights = Weights(list);
  std::stable_sort(weights.begin(), weights.end(), [](const Weight& a, const Weight& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  weights.resize(std::min(weights.size(), limit));
  return weights;
}

class TopWeightsOf
    : public ::testing::TestWithParam<std::tuple<const CatalogueEntry*, Space, bool>> {};

TEST_P(TopWeightsOf, AreThoseOfTheWholeLists) {
  const auto& [entry, space, classes] = GetParam();
  if (classes && !entry->has_classes()) return;
  constexpr int kClasses = 6;
  v1::Model settings = testing::SpaceSettings(space, "models/m", 12);
  testing::SetLearner(*settings.mutable_learner(), entry->name);
  if (classes) testing::SetClasses(ClassKind::kNamed, kClasses, settings);
  LoneModel lone(settings);
  EXPECT_TRUE(!classes || FindTopWeights(*lone.model, 3).lists.empty());
  for (auto& examples : testing::ClassMessages(2, classes ? kClasses : 2, 12, 60)) {
    for (testing::SvmExample& one : examples) one.label = classes || one.label > 0 ? one.label : -1;
    lone.Learn(testing::ClassBatch(classes ? ClassKind::kNamed : ClassKind::kFixed, space, examples)
                   .batch());
  }
  const std::vector<WeightList> all = ListWeights(*lone.model);
  ASSERT_EQ(all.size(), entry->form != Form::kLinear ? 0U : classes ? size_t{kClasses} : 1U);
  for (const size_t limit : {1, 5, 1000}) {
    const TopWeights top = FindTopWeights(*lone.model, limit);
    ASSERT_EQ(top.lists.size(), all.size());
    for (size_t k = 0; k < all.size(); ++k) {
      EXPECT_EQ(Weights(top.lists[k]), TopWeightsOfList(all[k], limit)) << k;
      // The whole list's is in float32.
      EXPECT_NEAR(top.lists[k].bias, all[k].bias, 1e-5) << k;
      EXPECT_EQ(top.lists[k].revision, all[k].revision);
    }
  }
}

std::vector<const CatalogueEntry*> Entries() {
  std::vector<const CatalogueEntry*> entries;
  for (const CatalogueEntry& entry : Catalogue()) entries.push_back(&entry);
  return entries;
}

INSTANTIATE_TEST_SUITE_P(All, TopWeightsOf,
                         ::testing::Combine(::testing::ValuesIn(Entries()),
                                            ::testing::Values(Space::kDense, Space::kNamed),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return testing::TestName(std::get<0>(info.param)->name) +
                                  testing::SpaceName(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "Classes" : "TwoLabels");
                         });

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
  EXPECT_EQ(Weights(top.lists[0]), TopWeightsOfList(ListWeights(*lone.model)[0], 50));
  EXPECT_EQ(top.last_revision, lone.model->revision());
}

}  // namespace
}  // namespace perceptrond
