// Members of a fleet with both of their ports, and what tests send to them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/fleet/fleet_server.h"
#include "server/rpc/call_memory.h"
#include "server/services/services.h"
#include "tests/server/fleet/fleet_member.h"
#include "tests/server/rpc/reactors.h"
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
  explicit Node(std::shared_ptr<MemoryJournal> journal = FleetMember::NewJournal())
      : member(address, std::move(journal)) {
    AddModelService(router, backend);
    AddLearningService(router, backend);
    AddPredictionService(router, backend);
    auto made = FleetServer::Make(backend, router, {address, "", "", "", kMostBytes});
    EXPECT_OK(made.status());
    fleet = *std::move(made);
    EXPECT_OK(fleet->Listen());
    front = std::make_unique<RpcServer>(
        [this](const std::string& path) -> const Call::Method& { return fleet->Find(path); }, 2);
  }
  // Where other servers call it.
  std::shared_ptr<grpc::Channel> ConnectToFleetPort() const {
    return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }

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
};

inline v1::LearnRequest OneRow(int label = 1) {
  v1::LearnRequest request;
  request.set_model(kModel);
  v1::Example& example = *request.add_examples();
  example.set_label(label);
  example.mutable_sparse()->add_indices(0);
  example.mutable_sparse()->add_values(1);
  return request;
}

inline std::string FirstOfStream() {
  v1::LearnStreamRequest first;
  first.set_model(kModel);
  return first.SerializeAsString();
}

inline v1::LearnStreamResponse ReadAnswer(ClientCall& call) {
  std::string bytes = "\xff";
  v1::LearnStreamResponse answer;
  EXPECT_TRUE(call.Read(bytes));
  EXPECT_TRUE(answer.ParseFromString(bytes));
  return answer;
}

}  // namespace perceptrond::fleet_server_test
