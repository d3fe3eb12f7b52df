// A server's store in a fleet of one partition, alone: who else writes it the test says, as another server would, in the journal and by
// heartbeats. And members of a fleet with both of their ports, all in the tests' own process, and what tests send to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fleet/fleet.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "server/fleet/fleet_server.h"
#include "server/rpc/call_memory.h"
#include "server/services/services.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/api.h"
#include "tests/support/models.h"
#include "tests/support/own_port.h"
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
    epoch_ = taken->epoch;
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

namespace perceptrond::fleet_server_test {

using namespace ::perceptrond::testing;
namespace fleet = ::perceptron::fleet::v1;
namespace v1 = ::perceptron::v1;

inline constexpr size_t kMostBytes = 64 << 10;
inline constexpr char kModel[] = "models/m";
inline constexpr char kLearn[] = "/perceptron.v1.LearningService/Learn";
inline constexpr char kLearnStream[] = "/perceptron.v1.LearningService/LearnStream";

inline std::string OwnAddress() { return absl::StrCat("127.0.0.1:", OwnPort()); }

// A member of a fleet with both of its ports.
struct Node {
  explicit Node(std::shared_ptr<MemoryJournal> journal = FleetMember::NewJournal(),
                absl::Duration rest_time = FleetMember::kWriterTimeout)
      : member(address, std::move(journal), rest_time) {
    AddModelService(router, backend);
    AddAliasService(router, backend);
    AddHistoryService(router, backend);
    AddLearningService(router, backend);
    AddPredictionService(router, backend);
    auto made = FleetServer::Make(backend, router, {address, "", "", ""});
    EXPECT_OK(made.status());
    fleet = *std::move(made);
    EXPECT_OK(fleet->Listen());
    front = std::make_unique<RpcServer>(
        [this](const std::string& path) -> const Call::Method& { return fleet->Find(path); }, 2);
    api.Connect(absl::StrCat("127.0.0.1:", front->port()));
  }
  // Other servers' connection to it.
  std::shared_ptr<grpc::Channel> ConnectToFleetPort() const {
    return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }
  // Through its front port.
  void Create(v1::Model settings) {
    const std::string id = IdOf(settings.name());
    settings.clear_name();
    api.Create(id, settings);
  }
  v1::Model Get(const std::string& name, v1::ModelView view = v1::MODEL_VIEW_UNSPECIFIED) {
    return api.Get(IdOf(name), view);
  }
  static std::string IdOf(const std::string& name) { return name.substr(sizeof("models/") - 1); }

  const std::string address = OwnAddress();
  FleetMember member;
  MemoryBudget budget{1 << 30, 1 << 28};
  InFlightMemory memory{budget, kLong};
  Drain drain;
  Workers workers{4};
  const Backend backend{member.store(), drain, workers, memory, kMostBytes};
  Router router;
  std::unique_ptr<FleetServer> fleet;
  // Ends before what its calls use.
  std::unique_ptr<RpcServer> front;
  // A client of the front port.
  Api api;
};

// The servers of one fleet, of which one writes all models, and the others know it. It stays the writer until it leaves.
class Nodes {
 public:
  explicit Nodes(int servers) {
    const std::shared_ptr<MemoryJournal> journal = FleetMember::NewJournal();
    for (int i = 0; i < servers; ++i) all_.push_back(std::make_unique<Node>(journal));
    const auto writer = [this] {
      return std::find_if(all_.begin(), all_.end(),
                          [](const auto& node) { return node->member.writes(); });
    };
    all_[0]->member.Release();
    WaitUntil([&] { return writer() != all_.end(); });
    std::iter_swap(all_.begin(), writer());
    WaitUntil([&] {
      return std::all_of(all_.begin(), all_.end(), [this](const auto& node) {
        return node->member.store().fleet()->WriterOf(0).address == all_[0]->address;
      });
    });
  }
  Node& writer() { return *all_[0]; }
  Node& follower(size_t i = 0) { return *all_[1 + i]; }
  const std::vector<std::unique_ptr<Node>>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Node>> all_;
};

// A stream of rows at a server's front port.
struct RowStream : RawLearnStream {
  RowStream(Node& node, const std::string& name, const std::string& producer = "")
      : RawLearnStream(node.api.learning(), Node::IdOf(name), producer) {}
};

inline v1::LearnRequest OneRow() {
  return FromText<v1::LearnRequest>(
      "model: 'models/m' examples { sparse { indices: 0 values: 1 } label: 1 }");
}

// A message of a stream with the same row, and a label.
inline v1::LearnStreamRequest StreamedRow(int label = 1) {
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(label, {{0, 1}});
  return request;
}

inline std::string FirstOfStream() {
  return FromText<v1::LearnStreamRequest>("model: 'models/m'").SerializeAsString();
}

inline v1::LearnStreamResponse ReadAnswer(ClientCall& call) {
  std::string bytes = "\xff";
  v1::LearnStreamResponse answer;
  EXPECT_TRUE(call.Read(bytes));
  EXPECT_TRUE(answer.ParseFromString(bytes));
  return answer;
}

}  // namespace perceptrond::fleet_server_test
