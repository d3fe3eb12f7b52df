// A store over a journal in memory that outlives it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/traffic.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

class StoreTest : public ::testing::Test {
 protected:
  void Open(const Store::Options& options) {
    store_.reset();
    store_ = std::make_unique<Store>(std::make_unique<JournalDecorator>(journal_), options);
  }
  StoreTest() { Open(Store::Options()); }

  v1::Model Create(const std::string& name, uint32_t dimension = 2) {
    const auto created = store_->Create(DenseSettings(name, dimension), "", false);
    EXPECT_OK(created.status());
    return created.value();
  }

  // Learns without a commit.
  static LearnOutcome LearnAlone(Model& model, const Columns& rows, Producer& producer,
                                 std::span<const PredictionOfRow> predictions = {},
                                 int64_t completed_pass = 0) {
    LearnCall call;
    call.batch = rows.batch();
    call.producer = &producer;
    call.predictions = predictions;
    call.completed_pass = completed_pass;
    LearnOutcome outcome;
    MutexLock turn(&producer.turn);
    EXPECT_OK(model.Learn(call, outcome));
    return outcome;
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
  const Columns row_ = Columns().AddDense({1, 2}, 1);
};

// As UpdateModel does.
inline absl::Status FreezeIn(Store& store, const std::string& name, const std::string& etag = "") {
  const auto freeze = [](v1::Model& model) {
    model.set_state(v1::MODEL_STATE_FROZEN);
    return absl::OkStatus();
  };
  return store.Change(name, {.etag = etag}, freeze).status();
}

inline absl::Status PointAlias(ModelCatalogue& catalogue, const std::string& alias,
                               const std::string& model) {
  const auto set = [&](Alias& changed) {
    changed.set_model(model);
    return absl::OkStatus();
  };
  return catalogue.ChangeAlias(alias, {.allow_missing = true}, set).status();
}

}  // namespace perceptrond::testing
