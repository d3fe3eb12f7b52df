// A store's models that nobody uses. The times are in model_expiry_test.cc, by a clock of the test's.
#include <gmock/gmock.h>

#include <mutex>

#include "tests/core/store/store_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

// Longer than a busy machine keeps a test between two uses of a model.
constexpr int64_t kExpireSeconds = 4;
constexpr absl::Duration kExpireAfter = absl::Seconds(kExpireSeconds);

class StoreExpiryTest : public StoreTest {
 protected:
  StoreExpiryTest() { OpenWith(Store::Options().memory_budget); }
  // Its thread calls this fixture.
  ~StoreExpiryTest() override { store_.reset(); }
  void OpenWith(size_t memory_budget) {
    Store::Options options;
    options.memory_budget = memory_budget;
    options.on_expired = [this](const std::string& model) {
      const std::lock_guard<std::mutex> lock(mutex_);
      expired_.push_back(model);
    };
    Open(options);
  }
  absl::StatusOr<v1::Model> CreateExpiring(const std::string& name, int64_t seconds) {
    v1::Model settings = DenseSettings(name, 2);
    settings.mutable_expire_after()->set_seconds(seconds);
    return store_->Create(settings, "", false);
  }
  bool Exists(const std::string& name) { return store_->catalogue().Find(name).ok(); }
  absl::Status Predict(const std::string& name) {
    const absl::StatusOr<std::shared_ptr<Model>> model = store_->Acquire(name);
    if (!model.ok()) return model.status();
    PredictOutcome outcome;
    return (*model)->Predict(row_.batch(), {}, 0, outcome);
  }
  std::vector<std::string> expired() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return expired_;
  }

  std::mutex mutex_;
  std::vector<std::string> expired_;
};

TEST_F(StoreExpiryTest, DeletesAModelOnceThatNobodyUsesAndNoOther) {
  Create("models/kept");
  const absl::Time begun = absl::Now();
  ASSERT_OK(CreateExpiring("models/m", kExpireSeconds).status());
  ASSERT_OK(store_->Acquire("models/m").status());
  EXPECT_TRUE(store_->Get("models/m")->expire_time.has_value());
  EXPECT_TRUE(Eventually([&] { return !Exists("models/m"); }));
  EXPECT_GE(absl::Now() - begun, kExpireAfter);
  EXPECT_TRUE(Eventually([&] { return store_->stats().expired == 1; }));
  EXPECT_TRUE(absl::IsNotFound(store_->Acquire("models/m").status()));
  EXPECT_THAT(expired(), ElementsAre("models/m"));
  EXPECT_TRUE(Exists("models/kept"));
  EXPECT_FALSE(store_->Get("models/kept")->expire_time.has_value());
  // Not again, nor by the next store.
  OpenWith(Store::Options().memory_budget);
  ASSERT_OK(CreateExpiring("models/m", kExpireSeconds).status());
  EXPECT_TRUE(Eventually([&] { return !Exists("models/m"); }));
  EXPECT_TRUE(Eventually([&] { return store_->stats().expired == 1; }));
  EXPECT_THAT(expired(), ElementsAre("models/m", "models/m"));
}

TEST_F(StoreExpiryTest, AModelThatIsUsedBetweenEvictionsStays) {
  // No model stays in memory beside the one that is held.
  OpenWith(1);
  ASSERT_OK(CreateExpiring("models/m", kExpireSeconds).status());
  ASSERT_OK(CreateExpiring("models/unused", kExpireSeconds).status());
  Create("models/other");
  const absl::Time begun = absl::Now();
  // The thread that deletes models may be late.
  while (absl::Now() < begun + 2 * kExpireAfter ||
         (Exists("models/unused") && absl::Now() < begun + 10 * kExpireAfter)) {
    ASSERT_OK(Predict("models/m"));
    ASSERT_OK(store_->Acquire("models/other").status());
  }
  EXPECT_FALSE(Exists("models/unused"));
  EXPECT_GT(store_->stats().evictions, 2U);
  // What was noted is what the next store has.
  OpenWith(1);
  EXPECT_TRUE(Exists("models/m"));
  EXPECT_TRUE(Eventually([&] { return !Exists("models/m"); }));
}

TEST_F(StoreExpiryTest, TheTimeBeginsWhenItIsSetAndEndsWhenItIsRemoved) {
  const v1::Model created = Create("models/m");
  ASSERT_OK(CreateExpiring("models/clock", kExpireSeconds + 1).status());
  const auto set = [&](int64_t seconds) {
    return store_->Change("models/m", {}, [seconds](v1::Model& model) {
      model.clear_expire_after();
      if (seconds > 0) model.mutable_expire_after()->set_seconds(seconds);
      return absl::OkStatus();
    });
  };
  ASSERT_OK(set(kExpireSeconds).status());
  ASSERT_OK(set(0).status());
  EXPECT_TRUE(Eventually([&] { return !Exists("models/clock"); }));
  EXPECT_TRUE(Exists("models/m"));
  const absl::Time begun = absl::Now();
  ASSERT_OK(set(kExpireSeconds).status());
  EXPECT_TRUE(Eventually([&] { return !Exists("models/m"); }));
  EXPECT_GE(absl::Now() - begun, kExpireAfter);
}

}  // namespace
}  // namespace perceptrond::testing
