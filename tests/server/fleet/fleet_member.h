// A server's store in a fleet of one partition. Who else writes it the test says, as another server would: in the
// journal, and by heartbeats.
#pragma once

#include <memory>
#include <string>

#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/models.h"
#include "tests/support/status.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {

class FleetMember {
 public:
  static constexpr absl::Duration kWriterTimeout = absl::Hours(1);

  // The partition has no writer until the test makes one. Members with one journal are one fleet. A hand-over waits for other
  // servers' counts of rows for `rest_time`.
  explicit FleetMember(const std::string& address = "this:1",
                       std::shared_ptr<MemoryJournal> journal = NewJournal(),
                       absl::Duration rest_time = kWriterTimeout)
      : journal_(std::move(journal)) {
    FleetOptions fleet;
    fleet.address = address;
    fleet.heartbeat = absl::Milliseconds(20);
    fleet.writer_timeout = kWriterTimeout;
    fleet.max_rest_time = rest_time;
    fleet.leave_time = kWriterTimeout;
    fleet.settle_time = absl::Hours(1);
    Store::Options options;
    options.fleet = std::make_shared<FleetOptions>(fleet);
    store_ = std::make_unique<Store>(journal_->OpenAgain(), options);
  }

  static std::shared_ptr<MemoryJournal> NewJournal() {
    return std::make_shared<MemoryJournal>(
        MemoryJournal::Options{.partitions = 1, .tail_bytes = 1 << 20});
  }

  Store& store() { return *store_; }
  bool writes() { return store_->fleet()->Writes(0); }
  uint64_t Create(const std::string& name) {
    EXPECT_OK(store_->Create(DenseSettings(name, 4), "", false).status());
    return journal_->Find(name)->id();
  }
  // Another server at this address takes the partition over, and says so. Returns its epoch.
  int64_t WriteAt(const std::string& address) {
    const auto taken = journal_->TakeOver(0, address, *journal_->LastSequence(0));
    EXPECT_OK(taken.status());
    EXPECT_FALSE(taken->stale);
    epoch_ = static_cast<int64_t>(taken->sequence);
    Announce(address, /*released=*/false);
    EXPECT_EQ(store_->fleet()->WriterOf(0).epoch, epoch_);
    return epoch_;
  }
  // The other server releases the partition. A member takes it over.
  void Release() {
    if (epoch_ == 0) WriteAt("other:1");
    Announce("", /*released=*/true);
  }
  // Has the fleet's only member take it over.
  void WriteHere() {
    Release();
    WaitUntil([&] { return writes(); });
  }

 private:
  void Announce(const std::string& address, bool released) {
    ::perceptron::fleet::v1::Heartbeat heartbeat;
    heartbeat.set_server_id("other");
    heartbeat.set_address(address);
    // It is given no partition.
    heartbeat.set_leaving(true);
    ::perceptron::fleet::v1::WrittenPartition& written = *heartbeat.add_written();
    written.set_epoch(epoch_);
    written.set_released(released);
    EXPECT_OK(journal_->Announce(heartbeat.SerializeAsString()));
  }

  const std::shared_ptr<MemoryJournal> journal_;
  std::unique_ptr<Store> store_;
  int64_t epoch_ = 0;
};

}  // namespace perceptrond::testing
