// Members of a fleet with both of their ports, all in the tests' own process, and what tests send to them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "perceptron/v1/alias_service.grpc.pb.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"
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
    AddAliasService(router, backend);
    AddHistoryService(router, backend);
    AddLearningService(router, backend);
    AddPredictionService(router, backend);
    auto made = FleetServer::Make(backend, router, {address, "", "", "", kMostBytes});
    EXPECT_OK(made.status());
    fleet = *std::move(made);
    EXPECT_OK(fleet->Listen());
    front = std::make_unique<RpcServer>(
        [this](const std::string& path) -> const Call::Method& { return fleet->Find(path); }, 2);
    const std::shared_ptr<grpc::Channel> channel = front->Connect();
    models = v1::ModelService::NewStub(channel);
    aliases = v1::AliasService::NewStub(channel);
    history = v1::HistoryService::NewStub(channel);
    learning = v1::LearningService::NewStub(channel);
    predictions = v1::PredictionService::NewStub(channel);
  }
  // Where other servers call it.
  std::shared_ptr<grpc::Channel> ConnectToFleetPort() const {
    return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }
  // Through its front port.
  void Create(v1::Model settings) {
    v1::CreateModelRequest request;
    request.set_model_id(settings.name().substr(sizeof("models/") - 1));
    settings.clear_name();
    *request.mutable_model() = std::move(settings);
    grpc::ClientContext context;
    v1::Model created;
    const grpc::Status status = models->CreateModel(&context, request, &created);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  v1::Model Get(const std::string& name, v1::ModelView view = v1::MODEL_VIEW_UNSPECIFIED) {
    v1::GetModelRequest request;
    request.set_name(name);
    request.set_view(view);
    grpc::ClientContext context;
    v1::Model model;
    const grpc::Status status = models->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
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
  // Of clients of the front port.
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::AliasService::Stub> aliases;
  std::unique_ptr<v1::HistoryService::Stub> history;
  std::unique_ptr<v1::LearningService::Stub> learning;
  std::unique_ptr<v1::PredictionService::Stub> predictions;
};

// The servers of one fleet, of which one writes all models, and the others know it. It stays the writer until it leaves.
class Nodes {
 public:
  explicit Nodes(int servers) {
    const std::shared_ptr<MemoryJournal> journal = FleetMember::NewJournal();
    for (int i = 0; i < servers; ++i) all_.push_back(std::make_unique<Node>(journal));
    all_[0]->member.Release();
    const auto writer = [this] {
      return std::find_if(all_.begin(), all_.end(),
                          [](const auto& node) { return node->member.writes(); });
    };
    EXPECT_TRUE(Eventually([&] { return writer() != all_.end(); }));
    std::iter_swap(all_.begin(), writer());
    EXPECT_TRUE(Eventually([&] {
      return std::all_of(all_.begin(), all_.end(), [this](const auto& node) {
        return node->member.store().fleet()->WriterOf(0).address == all_[0]->address;
      });
    }));
  }
  Node& writer() { return *all_[0]; }
  Node& follower(size_t i = 0) { return *all_[1 + i]; }
  const std::vector<std::unique_ptr<Node>>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Node>> all_;
};

// A stream of rows, and its answers one by one.
class RowStream {
 public:
  RowStream(Node& node, v1::LearnStreamRequest first)
      : stream_(node.learning->LearnStream(&context_)) {
    stream_->Write(first);
  }
  RowStream(Node& node, const std::string& model, const std::string& producer = "")
      : RowStream(node, First(model, producer)) {}

  // The answer to the first message.
  v1::StreamOpened Open() {
    EXPECT_TRUE(ReadMore());
    const v1::StreamOpened opened = response_.opened();
    Result();
    return opened;
  }
  void Send(const v1::LearnStreamRequest& request) { stream_->Write(request); }
  v1::LearnResult Result() {
    while (next_ >= response_.results_size()) {
      if (ReadMore()) continue;
      ADD_FAILURE() << "the stream ended";
      return {};
    }
    return response_.results(next_++);
  }
  v1::LearnResult Ask(const v1::LearnStreamRequest& request) {
    Send(request);
    return Result();
  }
  bool ReadMore() {
    next_ = 0;
    return stream_->Read(&response_);
  }
  // Ends it, unless the server does so first.
  grpc::Status Finish() {
    stream_->WritesDone();
    return AwaitEnd();
  }
  // While the client could still send.
  grpc::Status AwaitEnd() {
    while (ReadMore()) {
    }
    return stream_->Finish();
  }

  static v1::LearnStreamRequest First(const std::string& model, const std::string& producer) {
    v1::LearnStreamRequest first;
    first.set_model(model);
    if (!producer.empty()) first.mutable_producer()->set_id(producer);
    return first;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LearnStreamRequest, v1::LearnStreamResponse>>
      stream_;
  v1::LearnStreamResponse response_;
  int next_ = 0;
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

// The same as a message of a stream.
inline v1::LearnStreamRequest StreamedRow(int label = 1) {
  v1::LearnStreamRequest request;
  *request.mutable_examples() = OneRow(label).examples();
  return request;
}

inline std::string FirstOfStream() { return RowStream::First(kModel, "").SerializeAsString(); }

inline v1::LearnStreamResponse ReadAnswer(ClientCall& call) {
  std::string bytes = "\xff";
  v1::LearnStreamResponse answer;
  EXPECT_TRUE(call.Read(bytes));
  EXPECT_TRUE(answer.ParseFromString(bytes));
  return answer;
}

}  // namespace perceptrond::fleet_server_test
