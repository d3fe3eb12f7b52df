// A server that is busy with a change receives the others that other servers made meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

using ::testing::ElementsAre;

class ModelChangesTest : public ::testing::Test {
 protected:
  ModelChangesTest() {
    for (const char* name : {"a", "b"}) {
      storage::ModelHeader header;
      header.mutable_model()->set_name(name);
      EXPECT_OK(other_->Create(header));
    }
    other_->Listen([this](absl::string_view message) {
      ::perceptron::fleet::v1::Heartbeat heartbeat;
      EXPECT_TRUE(heartbeat.ParseFromString(std::string(message)));
      if (heartbeat.used_models_size() == 0) return;
      EXPECT_THAT(heartbeat.used_models(), ElementsAre(7));
      if (!told_.HasBeenNotified()) told_.Notify();
    });
    Fleet::Hooks hooks;
    hooks.drop = [](const auto& /*models*/, bool /*commit*/, const absl::Status& /*why*/) {};
    hooks.on_followed = [](const Model& /*model*/) {};
    hooks.before_hand_over = [](const auto& /*models*/) {};
    hooks.on_used_models = [this](const std::vector<uint64_t>& ids) {
      MutexLock lock(&mutex_);
      used_elsewhere_ = ids;
    };
    hooks.used_models = [] { return std::vector<uint64_t>{7}; };
    hooks.on_model_changed = [this](const storage::ModelHeader& header, bool deleted) {
      {
        MutexLock lock(&mutex_);
        received_.push_back(absl::StrCat(header.model().name(), " ", header.model().description(),
                                         deleted ? " deleted" : ""));
      }
      goes_on_.WaitForNotification();
    };
    FleetOptions options;
    options.address = "this:1";
    fleet_ = std::make_unique<Fleet>(journal_, options, std::move(hooks));
  }

  void Describe(const std::string& name, int number) {
    const storage::ModelHeader before = *other_->Find(name);
    storage::ModelHeader header = before;
    header.mutable_model()->set_description(absl::StrCat(number));
    ASSERT_OK(other_->Replace(header, before));
  }
  // Waits until there are so many.
  std::vector<std::string> Received(size_t changes) {
    MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return received_.size() >= changes;
    };
    mutex_.Await(absl::Condition(&enough));
    return received_;
  }

  MemoryJournal journal_{{.tail_bytes = 1 << 20}};
  // Another server's.
  const std::unique_ptr<MemoryJournal> other_ = journal_.OpenAgain();
  // This server has sent its first heartbeat.
  absl::Notification told_;
  absl::Notification goes_on_;
  Mutex mutex_;
  std::vector<std::string> received_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> used_elsewhere_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(ModelChangesTest, OtherServersAreToldWhichModelsAreUsed) {
  told_.WaitForNotification();
  other_->Listen(nullptr);
  ::perceptron::fleet::v1::Heartbeat heartbeat;
  heartbeat.add_used_models(9);
  ASSERT_OK(other_->Announce(heartbeat.SerializeAsString()));
  MutexLock lock(&mutex_);
  EXPECT_THAT(used_elsewhere_, ElementsAre(9));
}

TEST_F(ModelChangesTest, TheLastChangeOfEachModelIsPassedOnAndNotAllThatWaited) {
  Describe("a", 0);
  EXPECT_THAT(Received(1), ElementsAre("a 0"));
  for (int i = 1; i <= 1000; ++i) {
    Describe("b", i);
    Describe("a", i);
  }
  ASSERT_OK(other_->Delete("b"));
  // All are read before the first one is done.
  ASSERT_OK(journal_.Refresh());
  goes_on_.Notify();
  Received(3);
  fleet_.reset();
  EXPECT_THAT(Received(0), ElementsAre("a 0", "b 1000 deleted", "a 1000"));
}

}  // namespace
}  // namespace perceptrond
