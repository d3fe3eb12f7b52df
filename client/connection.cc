#include "client/connection.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <future>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/target.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "perceptron/v1/backup_service.grpc.pb.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"

namespace perceptrond::client {
namespace {

using google::protobuf::internal::WireFormatLite;

grpc::ByteBuffer EncodeRequest(const std::string& service) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    if (!service.empty()) WireFormatLite::WriteString(1, service, &out);
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// HealthCheckResponse.status; UNKNOWN where absent.
bool DecodeResponse(const grpc::ByteBuffer& buffer, Health* health) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  *health = Health::kUnknown;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_VARINT)) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t value = 0;
    if (!in.ReadVarint32(&value)) return false;
    *health = value <= 3 ? static_cast<Health>(value) : Health::kUnknown;
  }
  return in.ConsumedEntireMessage();
}

// grpc.health.v1.Health.Check without generated code, which Debian's gRPC does not ship: the
// request is one string field, the response one enum. An empty `service` is the whole server.
// NOT_FOUND: the server does not know the service. Blocks until the response or the context's
// deadline.
grpc::Status CheckHealthOver(const std::shared_ptr<grpc::Channel>& channel,
                             grpc::ClientContext* context, const std::string& service,
                             Health* health) {
  grpc::GenericStub stub(channel);
  const grpc::ByteBuffer request = EncodeRequest(service);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> answered;
  stub.UnaryCall(context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&answered](grpc::Status status) { answered.set_value(std::move(status)); });
  grpc::Status status = answered.get_future().get();
  if (status.ok() && !DecodeResponse(response, health)) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "the response is not a HealthCheckResponse");
  }
  return status;
}

class StubConnection : public Connection {
 public:
  explicit StubConnection(std::shared_ptr<grpc::Channel> channel)
      : models_(v1::ModelService::NewStub(channel)),
        learning_(v1::LearningService::NewStub(channel)),
        predictions_(v1::PredictionService::NewStub(channel)),
        analysis_(v1::AnalysisService::NewStub(channel)),
        backups_(v1::BackupService::NewStub(channel)),
        channel_(std::move(channel)) {}

  grpc::Status CreateModel(grpc::ClientContext* context, const v1::CreateModelRequest& request,
                           v1::Model* model) override {
    return models_->CreateModel(context, request, model);
  }
  grpc::Status GetModel(grpc::ClientContext* context, const v1::GetModelRequest& request,
                        v1::Model* model) override {
    return models_->GetModel(context, request, model);
  }
  grpc::Status ListWeights(grpc::ClientContext* context, const v1::ListWeightsRequest& request,
                           v1::ListWeightsResponse* response) override {
    return models_->ListWeights(context, request, response);
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
    return predictions_->Predict(context, request, response);
  }
  grpc::Status Explain(grpc::ClientContext* context, const v1::ExplainRequest& request,
                       v1::ExplainResponse* response) override {
    return predictions_->Explain(context, request, response);
  }
  grpc::Status CheckHealth(grpc::ClientContext* context, const std::string& service,
                           Health* health) override {
    return CheckHealthOver(channel_, context, service, health);
  }
  std::unique_ptr<grpc::ClientReaderInterface<v1::WatchModelResponse>> WatchModel(
      grpc::ClientContext* context, const v1::WatchModelRequest& request) override {
    return models_->WatchModel(context, request);
  }
  std::unique_ptr<grpc::ClientReaderInterface<v1::AnalyzeResponse>> Analyze(
      grpc::ClientContext* context, const v1::AnalyzeRequest& request) override {
    return analysis_->Analyze(context, request);
  }
  grpc::Status ListStoredExamples(grpc::ClientContext* context,
                                  const v1::ListStoredExamplesRequest& request,
                                  v1::ListStoredExamplesResponse* response) override {
    return analysis_->ListStoredExamples(context, request, response);
  }
  grpc::Status CreateBackup(grpc::ClientContext* context, const v1::CreateBackupRequest& request,
                            v1::Backup* backup) override {
    return backups_->CreateBackup(context, request, backup);
  }
  grpc::Status ListBackups(grpc::ClientContext* context, const v1::ListBackupsRequest& request,
                           v1::ListBackupsResponse* response) override {
    return backups_->ListBackups(context, request, response);
  }
  void LearnStream(grpc::ClientContext* context, LearnReactor* reactor) override {
    learning_->async()->LearnStream(context, reactor);
  }
  void PredictStream(grpc::ClientContext* context, PredictReactor* reactor) override {
    predictions_->async()->PredictStream(context, reactor);
  }

 private:
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const std::unique_ptr<v1::LearningService::Stub> learning_;
  const std::unique_ptr<v1::PredictionService::Stub> predictions_;
  const std::unique_ptr<v1::AnalysisService::Stub> analysis_;
  const std::unique_ptr<v1::BackupService::Stub> backups_;
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

// `address`: as the user gave it.
std::shared_ptr<grpc::Channel> ChannelTo(const Target& target, const std::string& address,
                                         const std::optional<TlsOptions>& tls,
                                         const CallMetadata& metadata) {
  // gRPC stays initialized until the process ends. Else the end of the last channel waits for a
  // thread of gRPC's own, which may be polling for another 10 s.
  [[maybe_unused]] static const bool initialized = (grpc_init(), true);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // A call that waits notices within 15 s that its server's machine is lost, or that the server has
  // stopped, and a fleet's next server is tried. A proxy that forbids such pings makes gRPC send fewer.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // For how long a new connection is tried before the next server's; 20 s by default.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  // gRPC 1.51 may hang a call that it sends again because its server ended, even once it is cancelled.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // The streams wait between attempts themselves, so the channel must reconnect without a backoff
  // of its own.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  if (GoesDirect(address)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (tls.has_value() && !(tls->server_name.empty() && target.host.empty())) {
    arguments.SetSslTargetNameOverride(tls->server_name.empty() ? target.host : tls->server_name);
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      target.address, Credentials(tls), arguments,
      MakeMetadataInterceptors(metadata, address, tls.has_value()));
}

// A connection to several servers.
class ListConnection final : public StubConnection {
 public:
  ListConnection(Target target, const std::string& address, const std::optional<TlsOptions>& tls,
                 const CallMetadata& metadata)
      : StubConnection(ChannelTo(target, address, tls, metadata)),
        target_(std::move(target)),
        address_(address),
        tls_(tls),
        metadata_(metadata) {}

  std::shared_ptr<Connection> ConnectTo(const std::string& address) override {
    const std::optional<Target> one = FindServer(target_, address);
    if (!one.has_value()) return nullptr;
    return std::make_shared<StubConnection>(ChannelTo(*one, address_, tls_, metadata_));
  }

 private:
  const Target target_;
  const std::string address_;
  const std::optional<TlsOptions> tls_;
  const CallMetadata metadata_;
};

constexpr std::string_view kCollection = "models/";

}  // namespace

std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel) {
  return std::make_shared<StubConnection>(std::move(channel));
}

std::shared_ptr<Connection> MakeConnection(const std::string& address,
                                           const std::optional<TlsOptions>& tls,
                                           const CallMetadata& metadata) {
  const std::string read = ReadAddresses(address).value_or(address);
  Target target = MakeTarget(read);
  if (target.servers.size() < 2) return MakeConnection(ChannelTo(target, read, tls, metadata));
  return std::make_shared<ListConnection>(std::move(target), read, tls, metadata);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<TlsOptions>& tls,
                                           const CallMetadata& metadata) {
  const std::string read = ReadAddresses(address).value_or(address);
  return ChannelTo(MakeTarget(read), read, tls, metadata);
}

RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection) {
  policy.sleep = [connection = std::move(connection),
                  sleep = std::move(policy.sleep)](absl::Duration wait) {
    const absl::Time until = absl::Now() + wait;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(absl::ToChronoTime(until));
    Health health = Health::kUnknown;
    connection->CheckHealth(&context, "", &health);
    sleep(std::max(until - absl::Now(), absl::ZeroDuration()));
  };
  return policy;
}

std::string ModelName(std::string_view name) {
  const bool is_full = name.starts_with(kCollection) || name.starts_with("aliases/");
  return is_full ? std::string(name) : std::string(kCollection).append(name);
}

std::string_view ModelId(std::string_view name) {
  return name.starts_with(kCollection) ? name.substr(kCollection.size()) : name;
}

std::string RandomId() {
  std::random_device source;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(source(), absl::kZeroPad8));
  return id;
}

}  // namespace perceptrond::client
