// A server on one data directory, started with other flags from time to time, and a producer whose
// examples are known.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perceptron/v1/backup_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class StorageTest : public ::testing::Test {
 protected:
  static constexpr int kExamples = 500;

  std::string data() const { return dir_.path() + "/data"; }
  void Start(const std::vector<std::string>& flags = {}) { StartOn(data(), flags); }
  void StartOn(const std::string& directory, const std::vector<std::string>& flags = {}) {
    server_ = std::make_unique<ServerProcess>(directory, flags);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(server_->address(),
                                                   grpc::InsecureChannelCredentials(), arguments);
    models_ = v1::ModelService::NewStub(channel);
    learning_ = v1::LearningService::NewStub(channel);
    predictions_ = v1::PredictionService::NewStub(channel);
    backups_ = v1::BackupService::NewStub(channel);
  }
  v1::Model Create(const std::string& id) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(id);
    request.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::Model created;
    EXPECT_TRUE(models_->CreateModel(&context, request, &created).ok());
    return created;
  }
  v1::Model Get(const std::string& id) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    request.set_view(v1::MODEL_VIEW_WEIGHTS);
    v1::Model model;
    const grpc::Status status = models_->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }
  // The producer's i-th example: nearly every one is a mistake.
  static v1::LearnStreamRequest Example(int64_t i) {
    v1::LearnStreamRequest request;
    request.set_first_offset(i);
    *request.add_examples() =
        SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F + static_cast<float>(i % 7)}, {1, 0.5F}});
    return request;
  }
  // Sends examples [from, to), and returns the last result.
  v1::LearnResult SendExamples(RawLearnStream& stream, int64_t from, int64_t to) {
    v1::LearnResult last;
    for (int64_t i = from; i < to; ++i) last = stream.Ask(Example(i));
    EXPECT_EQ(last.acknowledged_offset(), to - 1);
    return last;
  }
  // A stream whose claim is refused.
  grpc::Status ClaimStatus(const std::string& model, const v1::Producer& producer) {
    RawLearnStream stream(*learning_, model);
    *stream.first().mutable_producer() = producer;
    stream.Send(stream.first());
    return stream.Finish();
  }
  std::string Metric(const std::string& name) {
    return RunCommand("curl -sf http://127.0.0.1:" + std::to_string(server_->metrics_port()) +
                      "/metrics | grep '^" + name + " ' | cut -d' ' -f2")
        .out;
  }
  // The log with the most in it.
  static std::filesystem::path Log(const std::string& directory) {
    std::filesystem::path largest;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".log" &&
          (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)))
        largest = entry.path();
    }
    return largest;
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::LearningService::Stub> learning_;
  std::unique_ptr<v1::PredictionService::Stub> predictions_;
  std::unique_ptr<v1::BackupService::Stub> backups_;
};

}  // namespace perceptrond::testing
