// A store's models that nobody uses. The times of their deletion are in model_expiry_test.cc.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/core/store/store_fixture.h"

namespace perceptrond::testing {
namespace {

class StoreExpiryTest : public StoreTest {
 protected:
  StoreExpiryTest() {
    Store::Options options;
    options.memory_budget = 1;
    options.expiry_clocks.wall = [this] { return Now(); };
    options.expiry_clocks.steady = [this] { return absl::Hours(hour_.load()); };
    Open(options);
  }
  // The store uses the clock.
  ~StoreExpiryTest() override { store_.reset(); }

  // Ahead of the clock that headers have times of.
  absl::Time Now() const { return start_ + absl::Hours(hour_.load()); }
  void CreateExpiring(const std::string& name, int64_t seconds) {
    v1::Model settings = DenseSettings(name, 2);
    settings.mutable_expire_after()->set_seconds(seconds);
    ASSERT_OK(store_->Create(settings, "", false).status());
  }
  std::optional<absl::Time> ExpireTime(const std::string& name) {
    return store_->GetSummary(name)->expire_time;
  }

  const absl::Time start_ = absl::Now();
  std::atomic<int> hour_ = 1;
};

TEST_F(StoreExpiryTest, AUsePutsTheTimeOffAlsoOfAModelThatLeavesMemoryAndAChangeBeginsIt) {
  CreateExpiring("models/m", 3600);
  Create("models/other");
  for (int i = 0; i < 3; ++i) {
    ++hour_;
    PredictOutcome outcome;
    ASSERT_OK(store_->Acquire("models/m").value()->Predict(row_.batch(), {}, 0, outcome));
    ASSERT_OK(store_->Acquire("models/other").status());
    EXPECT_EQ(store_->GetIfLoaded("models/m"), nullptr);
    EXPECT_EQ(ExpireTime("models/m"), Now() + absl::Hours(1));
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
    if (seconds > 0) {
      EXPECT_EQ(ExpireTime("models/m"), Now() + absl::Hours(2));
    }
  }
  EXPECT_FALSE(ExpireTime("models/m").has_value());
  EXPECT_FALSE(ExpireTime("models/other").has_value());
}

}  // namespace
}  // namespace perceptrond::testing
