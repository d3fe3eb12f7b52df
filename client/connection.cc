#include "client/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "client/health.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"

namespace perceptrond::client {
namespace {

class StubConnection final : public Connection {
 public:
  explicit StubConnection(std::shared_ptr<grpc::Channel> channel)
      : models_(v1::ModelService::NewStub(channel)),
        learning_(v1::LearningService::NewStub(channel)),
        analysis_(v1::AnalysisService::NewStub(channel)),
        channel_(std::move(channel)) {}

  grpc::Status CreateModel(grpc::ClientContext* context, const v1::CreateModelRequest& request,
                           v1::Model* model) override {
    return models_->CreateModel(context, request, model);
  }
  grpc::Status GetModel(grpc::ClientContext* context, const v1::GetModelRequest& request,
                        v1::Model* model) override {
    return models_->GetModel(context, request, model);
  }
  grpc::Status ListModels(grpc::ClientContext* context, const v1::ListModelsRequest& request,
                          v1::ListModelsResponse* response) override {
    return models_->ListModels(context, request, response);
  }
  grpc::Status UpdateModel(grpc::ClientContext* context, const v1::UpdateModelRequest& request,
                           v1::Model* model) override {
    return models_->UpdateModel(context, request, model);
  }
  grpc::Status DeleteModel(grpc::ClientContext* context,
                           const v1::DeleteModelRequest& request) override {
    google::protobuf::Empty nothing;
    return models_->DeleteModel(context, request, &nothing);
  }
  grpc::Status FreezeModel(grpc::ClientContext* context, const v1::FreezeModelRequest& request,
                           v1::Model* model) override {
    return models_->FreezeModel(context, request, model);
  }
  grpc::Status UnfreezeModel(grpc::ClientContext* context, const v1::UnfreezeModelRequest& request,
                             v1::Model* model) override {
    return models_->UnfreezeModel(context, request, model);
  }
  grpc::Status Learn(grpc::ClientContext* context, const v1::LearnRequest& request,
                     v1::LearnResponse* response) override {
    return learning_->Learn(context, request, response);
  }
  grpc::Status Predict(grpc::ClientContext* context, const v1::PredictRequest& request,
                       v1::PredictResponse* response) override {
    return learning_->Predict(context, request, response);
  }
  grpc::Status Explain(grpc::ClientContext* context, const v1::ExplainRequest& request,
                       v1::ExplainResponse* response) override {
    return learning_->Explain(context, request, response);
  }
  grpc::Status CheckHealth(grpc::ClientContext* context, const std::string& service,
                           Health* health) override {
    return CheckHealthOver(channel_, context, service, health);
  }
  std::unique_ptr<grpc::ClientReaderInterface<v1::WatchModelResponse>> WatchModel(
      grpc::ClientContext* context, const v1::WatchModelRequest& request) override {
    return learning_->WatchModel(context, request);
  }
  std::unique_ptr<grpc::ClientReaderInterface<v1::AnalyzeResponse>> Analyze(
      grpc::ClientContext* context, const v1::AnalyzeRequest& request) override {
    return analysis_->Analyze(context, request);
  }
  grpc::Status ListRetainedExamples(grpc::ClientContext* context,
                                    const v1::ListRetainedExamplesRequest& request,
                                    v1::ListRetainedExamplesResponse* response) override {
    return analysis_->ListRetainedExamples(context, request, response);
  }
  void LearnStream(grpc::ClientContext* context, LearnReactor* reactor) override {
    learning_->async()->LearnStream(context, reactor);
  }
  void PredictStream(grpc::ClientContext* context, PredictReactor* reactor) override {
    learning_->async()->PredictStream(context, reactor);
  }

 private:
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const std::unique_ptr<v1::LearningService::Stub> learning_;
  const std::unique_ptr<v1::AnalysisService::Stub> analysis_;
  const std::shared_ptr<grpc::Channel> channel_;
};

std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::optional<TlsOptions>& tls) {
  if (!tls.has_value()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls->root_certificates;
  options.pem_cert_chain = tls->certificate_chain;
  options.pem_private_key = tls->private_key;
  return grpc::SslCredentials(options);
}

}  // namespace

std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel) {
  return std::make_shared<StubConnection>(std::move(channel));
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<TlsOptions>& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // gRPC servers take pings more often than every five minutes for an attack and hang up.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // The streams wait between attempts themselves; the channel must then try at once, not sit out a
  // wait of its own.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  if (tls.has_value() && !tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(tls->server_name);
  }
  return grpc::CreateCustomChannel(address, Credentials(tls), arguments);
}

}  // namespace perceptrond::client
