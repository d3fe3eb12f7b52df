// A store's models that nobody uses. The times are in model_expiry_test.cc, by a clock of the test's.
#include <gtest/gtest.h>

#include "tests/core/store/store_fixture.h"

namespace perceptrond::testing {
namespace {

class StoreExpiryTest : public StoreTest {
 protected:
  void CreateExpiring(const std::string& name, int64_t seconds) {
    v1::Model settings = DenseSettings(name, 2);
    settings.mutable_expire_after()->set_seconds(seconds);
    ASSERT_OK(store_->Create(settings, "", false).status());
  }
  std::optional<absl::Time> ExpireTime(const std::string& name) {
    return store_->GetSummary(name)->expire_time;
  }
};

TEST_F(StoreExpiryTest, AUsePutsTheTimeOffAlsoOfAModelThatLeavesMemoryAndAChangeBeginsIt) {
  Store::Options options;
  options.memory_budget = 1;
  Open(options);
  CreateExpiring("models/m", 3600);
  Create("models/other");
  absl::Time last = *ExpireTime("models/m");
  const auto expect_later = [&] {
    EXPECT_GT(*ExpireTime("models/m"), last);
    last = *ExpireTime("models/m");
  };
  for (int i = 0; i < 3; ++i) {
    PredictOutcome outcome;
    ASSERT_OK(store_->Acquire("models/m").value()->Predict(row_.batch(), {}, 0, outcome));
    ASSERT_OK(store_->Acquire("models/other").status());
    EXPECT_EQ(store_->GetIfLoaded("models/m"), nullptr);
    expect_later();
  }
  for (const int64_t seconds : {7200, 0}) {
    ASSERT_OK(store_
                  ->Change("models/m", {},
                           [&](v1::Model& model) {
                             model.clear_expire_after();
                             if (seconds > 0) model.mutable_expire_after()->set_seconds(seconds);
                             return absl::OkStatus();
                           })
                  .status());
    if (seconds > 0) expect_later();
  }
  EXPECT_FALSE(ExpireTime("models/m").has_value());
  EXPECT_FALSE(ExpireTime("models/other").has_value());
}

}  // namespace
}  // namespace perceptrond::testing
