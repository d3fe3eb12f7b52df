// What servers announce to one another fits the notices of each home of the journal.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "tests/support/wait_until.h"

#include <gtest/gtest.h>

namespace perceptrond {
namespace {

// As PostgresTable::Announce.
constexpr size_t kMostBytes = 5900;

TEST(Announcements, AreSmallWhateverAServerWritesAndManyModelsAreUsed) {
  MemoryJournal other({.partitions = 256, .tail_bytes = 1 << 20});
  const std::unique_ptr<MemoryJournal> journal = other.OpenAgain();
  std::vector<uint64_t> used;
  for (uint64_t i = 0; i < 1300; ++i) used.push_back(UINT64_MAX - i);
  Mutex mutex;
  size_t largest = 0;
  std::set<uint64_t> heard;
  bool writes_all = false;
  other.Listen([&](absl::string_view message) {
    ::perceptron::fleet::v1::Heartbeat heartbeat;
    EXPECT_TRUE(heartbeat.ParseFromArray(message.data(), static_cast<int>(message.size())));
    MutexLock lock(&mutex);
    largest = std::max(largest, message.size());
    heard.insert(heartbeat.used_models().begin(), heartbeat.used_models().end());
    writes_all |= heartbeat.written_size() == 256;
  });
  FleetOptions options;
  options.address = std::string(255, 'a') + ":65535";
  options.client_address = std::string(255, 'c') + ":65535";
  options.heartbeat = absl::Milliseconds(1);
  options.writer_timeout = absl::Milliseconds(1);
  Fleet::Hooks hooks;
  hooks.drop = [](auto, auto, auto) {};
  hooks.before_hand_over = [](auto) {};
  hooks.on_followed = [](const Model&) {};
  hooks.used_models = [&] { return used; };
  hooks.on_model_changed = [](auto, auto) {};
  {
    const Fleet fleet(*journal, options, hooks);
    testing::WaitUntil([&] {
      MutexLock lock(&mutex);
      return writes_all && heard.size() == used.size();
    });
  }
  other.Listen(nullptr);
  EXPECT_LE(largest, kMostBytes);
}

}  // namespace
}  // namespace perceptrond
