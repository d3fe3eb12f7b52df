// Servers of one process that open one journal, on a clock of the tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"
#include "tests/support/disturbed_journal.h"
#include "tests/support/traffic.h"
#include "tests/support/wait_until.h"

namespace perceptrond::fleet_test {

using testing::DenseSettings;
using testing::DisturbedJournal;
using testing::Message;
using testing::Space;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

inline constexpr uint32_t kPartitions = 4;
// Time passes in such steps. All servers hear of each other in each.
inline constexpr absl::Duration kStep = absl::Milliseconds(50);
inline constexpr absl::Duration kMaxLag = absl::Milliseconds(200);

// Counts the heartbeats that its server has sent, or tried to send.
class CountedJournal final : public testing::JournalDecorator {
 public:
  CountedJournal(std::shared_ptr<Journal> base, std::shared_ptr<std::atomic<int>> heartbeats)
      : JournalDecorator(std::move(base)), heartbeats_(std::move(heartbeats)) {}
  // At one moment: other servers write.
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override {
    return base().Load(model_id);
  }
  absl::Status Announce(absl::string_view message) override {
    const absl::Status status = JournalDecorator::Announce(message);
    ++*heartbeats_;
    return status;
  }

 private:
  const std::shared_ptr<std::atomic<int>> heartbeats_;
};

class FleetTest : public ::testing::Test {
 protected:
  struct Server {
    // Owned by the store; null if a test has made the journal.
    DisturbedJournal* journal = nullptr;
    std::unique_ptr<Store> store;
    Members::Clock::time_point started;
    std::shared_ptr<std::atomic<int>> heartbeats = std::make_shared<std::atomic<int>>(0);
  };

  FleetTest() {
    traffic_.dimension = 12;
    fleet_options_.now = [this] { return Now(); };
    // By the real clock.
    fleet_options_.heartbeat = absl::Milliseconds(1);
    fleet_options_.writer_timeout = absl::Seconds(2);
    fleet_options_.rank_delay = absl::Milliseconds(50);
    fleet_options_.settle_time = absl::Milliseconds(100);
    fleet_options_.max_lag = kMaxLag;
    // By the real clock.
    fleet_options_.leave_time = absl::Hours(1);
  }

  Members::Clock::time_point Now() const {
    return Members::Clock::time_point(kStart + steps_.load() * absl::ToChronoNanoseconds(kStep));
  }
  // Lets time pass. A server that says nothing meanwhile is paused, and not slow.
  void Pass() {
    ++steps_;
    std::vector<int> before;
    for (const Server& server : servers_) before.push_back(*server.heartbeats);
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i].store == nullptr) continue;
      // The first may have been sent before.
      testing::WaitUntil([&] { return *servers_[i].heartbeats >= before[i] + 2; });
    }
  }
  template <typename Condition>
  void PassUntil(const Condition& condition) {
    while (!condition()) Pass();
  }

  Server& Start() {
    auto journal = std::make_unique<DisturbedJournal>(journal_.OpenAgain());
    DisturbedJournal* const disturbed = journal.get();
    Server& server = Start(std::move(journal));
    server.journal = disturbed;
    return server;
  }
  Server& Start(std::unique_ptr<Journal> journal, Store::Options options = {},
                const std::string& address = "") {
    const bool is_first = std::all_of(servers_.begin(), servers_.end(),
                                      [](const Server& one) { return one.store == nullptr; });
    Server& server = servers_.emplace_back();
    fleet_options_.address = address.empty() ? absl::StrCat("server", ++started_) : address;
    options.fleet = std::make_shared<FleetOptions>(fleet_options_);
    server.store = std::make_unique<Store>(
        std::make_unique<CountedJournal>(std::move(journal), server.heartbeats), options);
    server.started = Now();
    if (is_first) ReleaseAll();
    return server;
  }
  // Does what the last server of a fleet that ends does: the next one need not wait for its silence.
  void ReleaseAll() {
    PassUntil([&] { return AllHaveReadTheLog(); });
    ::perceptron::fleet::v1::Heartbeat heartbeat;
    heartbeat.set_server_id("before");
    heartbeat.set_leaving(true);
    for (uint32_t i = 0; i < kPartitions; ++i) {
      const auto taken = journal_.TakeOver(i, "before", journal_.LastSequence(i).value());
      ASSERT_OK(taken.status());
      const int64_t epoch = taken->epoch;
      ::perceptron::fleet::v1::WrittenPartition& written = *heartbeat.add_written();
      written.set_partition(i);
      written.set_epoch(epoch);
      written.set_released(true);
      PassUntil([&] { return servers_.back().store->fleet()->stats()[i].epoch == epoch; });
    }
    ASSERT_OK(journal_.Announce(heartbeat.SerializeAsString()));
  }
  void Start(int servers) {
    servers_.reserve(8);
    for (int i = 0; i < servers; ++i) Start();
    PassUntil([&] { return WrittenOnce() && AllHaveReadTheLog(); });
  }
  // True if each partition has one writer among the servers.
  bool WrittenOnce() {
    std::vector<int> writers(kPartitions);
    for (const Server& server : servers_) {
      if (server.store == nullptr) continue;
      const auto stats = server.store->fleet()->stats();
      for (uint32_t i = 0; i < kPartitions; ++i) writers[i] += stats[i].writes ? 1 : 0;
    }
    return writers == std::vector<int>(kPartitions, 1);
  }
  // True if every server has opened and read the log of each partition. One that opens it later loads models
  // with the updates before, and never lacks them.
  bool AllHaveReadTheLog() {
    return std::all_of(servers_.begin(), servers_.end(), [this](const Server& server) {
      if (server.store == nullptr) return true;
      const absl::Duration age = absl::FromChrono(Now() - server.started);
      const auto stats = server.store->fleet()->stats();
      return std::all_of(stats.begin(), stats.end(), [age](const PartitionRole::Stats& partition) {
        return partition.since_contact < age;
      });
    });
  }
  static int Written(const Server& server) {
    int written = 0;
    for (const PartitionRole::Stats& stats : server.store->fleet()->stats())
      written += stats.writes ? 1 : 0;
    return written;
  }
  uint64_t IdOf(const std::string& name) { return journal_.Find(name)->id(); }
  // Waits for the next writer where partitions change hands.
  Server* WriterOf(const std::string& name) {
    const uint64_t id = IdOf(name);
    const auto writes = [id](const Server& one) {
      return one.store != nullptr && one.store->fleet()->Writes(id);
    };
    auto found = servers_.end();
    PassUntil([&] {
      return (found = std::find_if(servers_.begin(), servers_.end(), writes)) != servers_.end();
    });
    return found == servers_.end() ? &servers_.front() : &*found;
  }
  // Any server but the writer.
  Server& FollowerOf(const std::string& name) {
    Server* const writer = WriterOf(name);
    for (Server& server : servers_) {
      if (server.store != nullptr && &server != writer) return server;
    }
    return servers_.front();
  }
  void Create(const std::string& name) {
    ASSERT_OK(servers_.front()
                  .store->Create(DenseSettings(name, traffic_.dimension), "", false)
                  .status());
  }
  // Sends a message to whichever server writes the model, until one has acknowledged it.
  void Learn(const std::string& name, const Message& message) {
    PassUntil([&] {
      for (Server& server : servers_) {
        if (server.store != nullptr &&
            SendMessage(*server.store, name, Space::kDense, message).status.ok())
          return true;
      }
      return false;
    });
  }
  // The state of a model that never had more than one server.
  std::string Expected(const std::vector<Message>& messages) {
    Store alone(std::make_unique<MemoryJournal>(), Store::Options());
    EXPECT_OK(alone.Create(DenseSettings("models/m", traffic_.dimension), "", false).status());
    for (const Message& message : messages)
      EXPECT_OK(SendMessage(alone, "models/m", Space::kDense, message).status);
    return StateBytes(*alone.Acquire("models/m").value());
  }
  static std::string State(Server& server, const std::string& name) {
    const auto model = server.store->Acquire(name);
    return model.ok() ? StateBytes(**model) : std::string(model.status().message());
  }
  // True if all servers have this state of the model.
  bool AllHave(const std::string& name, const std::string& state) {
    return std::all_of(servers_.begin(), servers_.end(), [&](Server& server) {
      return server.store == nullptr || State(server, name) == state;
    });
  }

  static constexpr std::chrono::seconds kStart{1000};
  std::atomic<int> steps_ = 0;
  testing::TrafficOptions traffic_;
  // Options of servers that are started from now on, but for their addresses.
  FleetOptions fleet_options_;
  MemoryTable table_;
  MemoryJournal journal_{table_.OpenAgain(), {.partitions = kPartitions, .tail_bytes = 64 << 20}};
  std::vector<Server> servers_;
  int started_ = 0;
};

}  // namespace perceptrond::fleet_test
