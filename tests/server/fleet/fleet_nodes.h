// Members of a fleet with both of their ports, all in the tests' own process, and what tests send to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "server/fleet/fleet_server.h"
#include "server/rpc/call_memory.h"
#include "server/services/services.h"
#include "tests/server/fleet/fleet_member.h"
#include "tests/server/rpc/reactors.h"
#include "tests/support/api.h"
#include "tests/support/own_port.h"

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
