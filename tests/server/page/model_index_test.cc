// The status page's index of models: orders, conditions, rates, and how often all models are read.
#include "server/page/model_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/journal/memory_journal.h"
#include "tests/support/status.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
namespace v1 = ::perceptron::v1;

ModelFilter Where(std::string ModelFilter::*field, std::string value) {
  ModelFilter filter;
  filter.*field = std::move(value);
  return filter;
}

class ModelIndexTest : public ::testing::Test {
 protected:
  void Create(const std::string& id, const std::string& description = "") {
    v1::Model settings = DenseSettings("models/" + id, 1);
    settings.set_description(description);
    ASSERT_OK(store_.Create(std::move(settings), "", false).status());
    // Loaded, so that its state is known.
    ASSERT_OK(store_.Acquire("models/" + id).status());
  }
  // Learns `same` examples of one point and label, of which only the first can be a mistake, and then
  // `contrary` ones of labels that change each time, which all are. Its value is no whole number, or
  // the model would be proven not to be separable.
  void Learn(const std::string& id, int same, int contrary = 0) {
    for (int i = 0; i < same + contrary; ++i) {
      const int label = i < same || (i - same) % 2 == 1 ? 1 : -1;
      ASSERT_OK(
          testing::Send(store_, "models/" + id, "p", Columns().AddDense({0.7f}, label).batch())
              .status);
    }
  }
  void MarkPass(const std::string& id, int64_t number) {
    ASSERT_OK(
        testing::Send(store_, "models/" + id, "p", Columns().batch(), std::nullopt, number).status);
  }
  void Freeze(const std::string& id) {
    ASSERT_OK(store_
                  .Change("models/" + id, {},
                          [](v1::Model& model) {
                            model.set_state(v1::MODEL_STATE_FROZEN);
                            return absl::OkStatus();
                          })
                  .status());
  }
  void Pass(absl::Duration time) { now_ += time; }

  std::vector<std::string> Ids(const ModelFilter& filter, size_t skip = 0, size_t limit = 100) {
    const absl::StatusOr<ModelIndex::Found> found = index_.Find(filter, skip, limit);
    EXPECT_OK(found.status());
    std::vector<std::string> ids;
    for (const ModelRow& row : found->rows) ids.push_back(row.name.substr(strlen("models/")));
    return ids;
  }
  std::vector<std::string> Ordered(const std::string& order) {
    return Ids(Where(&ModelFilter::order_by, order));
  }
  std::optional<double> Rate(const std::string& id) {
    return index_.Find(Where(&ModelFilter::search, id), 0, 1)->rows.at(0).rate;
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  ModelIndex index_{store_, [this] { return now_; }};
};

TEST_F(ModelIndexTest, ModelsAreInTheirNamesOrderOrTheOrderOfAFigureWithEqualOnesByName) {
  for (const char* id : {"a", "b", "c", "d"}) Create(id);
  Learn("a", 10, 5);
  Learn("b", 30);
  Learn("c", 10);
  EXPECT_THAT(Ordered(""), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Ordered("name desc"), ElementsAre("d", "c", "b", "a"));
  EXPECT_THAT(Ordered("examples desc"), ElementsAre("b", "a", "c", "d"));
  EXPECT_THAT(Ordered("examples"), ElementsAre("d", "c", "a", "b"));
  EXPECT_THAT(Ordered("updates desc"), ElementsAre("a", "b", "c", "d"));
  // The error of a model that has seen nothing is not known: it comes last both ways.
  EXPECT_THAT(Ordered("error"), ElementsAre("b", "c", "a", "d"));
  EXPECT_THAT(Ordered("window_error desc"), ElementsAre("a", "c", "b", "d"));
}

TEST_F(ModelIndexTest, StatesAreInTheOrderInWhichTheyCallForAttention) {
  for (const char* id : {"converged", "drifting", "learning", "new"}) Create(id);
  Learn("converged", 5);
  MarkPass("converged", 1);
  Learn("converged", 5);
  MarkPass("converged", 2);
  Learn("drifting", 3000, 200);
  Learn("learning", 5);
  EXPECT_THAT(Ordered("state"), ElementsAre("drifting", "learning", "converged", "new"));
  EXPECT_THAT(Ordered("state desc"), ElementsAre("new", "converged", "learning", "drifting"));
  for (const char* state : {"converged", "drifting", "learning"})
    EXPECT_THAT(Ids(Where(&ModelFilter::state, state)), ElementsAre(state));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("new"));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "refuted")), IsEmpty());
}

TEST_F(ModelIndexTest, AFrozenModelHasItsStateAndIsFoundByBoth) {
  Create("frozen");
  Create("other");
  Learn("frozen", 3);
  Freeze("frozen");
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "frozen")), ElementsAre("frozen"));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "learning")), ElementsAre("frozen"));
}

TEST_F(ModelIndexTest, ConditionsHoldTogetherAndAllThatMatchAreCounted) {
  for (int i = 0; i < 30; ++i) {
    const std::string id = absl::StrFormat("m%02d", i);
    Create(id, i % 2 == 0 ? "an Even one" : "");
    Learn(id, 10, i % 3 == 0 ? 10 : 0);
  }
  ModelFilter filter = Where(&ModelFilter::search, "EVEN");
  filter.min_error = 0.3;
  EXPECT_THAT(Ids(filter), ElementsAre("m00", "m06", "m12", "m18", "m24"));
  EXPECT_THAT(Ids(filter, 3, 100), ElementsAre("m18", "m24"));
  EXPECT_THAT(Ids(filter, 1, 2), ElementsAre("m06", "m12"));
  EXPECT_THAT(Ids(filter, 5, 2), IsEmpty());
  EXPECT_THAT(Ids(filter, 50, 2), IsEmpty());
  EXPECT_EQ(index_.Find(filter, 1, 2)->matches, 5U);
}

TEST_F(ModelIndexTest, RatesAreExamplesPerSecondBetweenTwoReadingsAndActiveAreThoseThatHaveOne) {
  for (const char* id : {"busy", "idle", "slow"}) Create(id);
  Learn("idle", 50);
  EXPECT_EQ(Rate("busy"), std::nullopt);
  ModelFilter active = Where(&ModelFilter::order_by, "rate desc");
  active.active = true;
  EXPECT_THAT(Ids(active), IsEmpty());
  Learn("busy", 40);
  Learn("slow", 4);
  Pass(absl::Seconds(2));
  EXPECT_THAT(Rate("busy"), Optional(20));
  EXPECT_THAT(Rate("slow"), Optional(2));
  EXPECT_THAT(Rate("idle"), Optional(0));
  EXPECT_THAT(Ids(active), ElementsAre("busy", "slow"));
  // Too soon for new rates: these stay.
  Learn("idle", 10);
  Pass(absl::Seconds(1));
  EXPECT_THAT(Rate("busy"), Optional(20));
  Pass(absl::Seconds(1));
  EXPECT_THAT(Rate("busy"), Optional(0));
  EXPECT_THAT(Rate("idle"), Optional(5));
  // Nor over a time at which nobody asked.
  Learn("busy", 100);
  Pass(absl::Hours(1));
  EXPECT_EQ(Rate("busy"), std::nullopt);
}

TEST_F(ModelIndexTest, FiguresAreReadAgainAfterASecondAndModelsAtOnce) {
  Create("a");
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("a"));
  Learn("a", 1);
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), ElementsAre("a"));
  Pass(absl::Seconds(1));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), IsEmpty());
  Create("b");
  EXPECT_THAT(Ordered(""), ElementsAre("a", "b"));
  ASSERT_OK(store_.Delete("models/a", "", false));
  EXPECT_THAT(Ordered(""), ElementsAre("b"));
  // A clock that was set back does not stop it.
  Learn("b", 1);
  Pass(-absl::Hours(1));
  EXPECT_THAT(Ids(Where(&ModelFilter::state, "no examples")), IsEmpty());
}

}  // namespace
}  // namespace perceptrond
