// Connection: the interface to a server, with one virtual method per RPC. Client and the streams
// use it; tests and instrumentation can replace it.
//
//   auto connection = MakeConnection("127.0.0.1:7600");
//   Client client(connection);
//
// Threads: implementations must allow concurrent calls.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/call_metadata.h"
#include "client/retry.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/backup_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {

namespace v1 = ::perceptron::v1;

enum class Health { kUnknown, kServing, kNotServing, kServiceUnknown };

class Connection {
 public:
  using LearnReactor = grpc::ClientBidiReactor<v1::LearnStreamRequest, v1::LearnStreamResponse>;
  using PredictReactor = grpc::ClientBidiReactor<v1::PredictRequest, v1::PredictResponse>;

  virtual ~Connection() = default;

  virtual grpc::Status CreateModel(grpc::ClientContext*, const v1::CreateModelRequest&,
                                   v1::Model*) = 0;
  virtual grpc::Status GetModel(grpc::ClientContext*, const v1::GetModelRequest&, v1::Model*) = 0;
  virtual grpc::Status ListWeights(grpc::ClientContext*, const v1::ListWeightsRequest&,
                                   v1::ListWeightsResponse*) = 0;
  virtual grpc::Status ListModels(grpc::ClientContext*, const v1::ListModelsRequest&,
                                  v1::ListModelsResponse*) = 0;
  virtual grpc::Status UpdateModel(grpc::ClientContext*, const v1::UpdateModelRequest&,
                                   v1::Model*) = 0;
  virtual grpc::Status DeleteModel(grpc::ClientContext*, const v1::DeleteModelRequest&) = 0;
  virtual grpc::Status FreezeModel(grpc::ClientContext*, const v1::FreezeModelRequest&,
                                   v1::Model*) = 0;
  virtual grpc::Status UnfreezeModel(grpc::ClientContext*, const v1::UnfreezeModelRequest&,
                                     v1::Model*) = 0;
  virtual grpc::Status Learn(grpc::ClientContext*, const v1::LearnRequest&, v1::LearnResponse*) = 0;
  virtual grpc::Status Predict(grpc::ClientContext*, const v1::PredictRequest&,
                               v1::PredictResponse*) = 0;
  virtual grpc::Status Explain(grpc::ClientContext*, const v1::ExplainRequest&,
                               v1::ExplainResponse*) = 0;
  virtual grpc::Status CreateBackup(grpc::ClientContext*, const v1::CreateBackupRequest&,
                                    v1::Backup*) = 0;
  virtual grpc::Status ListBackups(grpc::ClientContext*, const v1::ListBackupsRequest&,
                                   v1::ListBackupsResponse*) = 0;
  // grpc.health.v1.Health.Check.
  virtual grpc::Status CheckHealth(grpc::ClientContext*, const std::string& service,
                                   Health* health) = 0;
  virtual std::unique_ptr<grpc::ClientReaderInterface<v1::WatchModelResponse>> WatchModel(
      grpc::ClientContext*, const v1::WatchModelRequest&) = 0;
  virtual std::unique_ptr<grpc::ClientReaderInterface<v1::AnalyzeResponse>> Analyze(
      grpc::ClientContext*, const v1::AnalyzeRequest&) = 0;
  virtual grpc::Status ListStoredExamples(grpc::ClientContext*,
                                          const v1::ListStoredExamplesRequest&,
                                          v1::ListStoredExamplesResponse*) = 0;
  // Prepare a stream; reactor->StartCall() starts it.
  virtual void LearnStream(grpc::ClientContext*, LearnReactor* reactor) = 0;
  virtual void PredictStream(grpc::ClientContext*, PredictReactor* reactor) = 0;
  // A connection to the one of several servers that has this address, "host:port"; null if there is none.
  // May block.
  virtual std::shared_ptr<Connection> ConnectTo(const std::string& /*address*/) { return nullptr; }
};

// TLS settings of a client. Certificates and keys are in PEM form. A plain value.
struct TlsOptions {
  // Certificates of the authorities trusted to sign the server's certificate. Empty: the system's.
  std::string root_certificates;
  // The client's certificate with its chain, and its key, for servers that ask for one. Both or
  // neither.
  std::string certificate_chain;
  std::string private_key;
  // The name that the server's certificate must have. Empty: the host in the address.
  std::string server_name;
};

// Returns a connection over the channel.
std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel);

// Returns a connection over a channel of MakeChannel. With several servers of a fleet, a numbered stream whose
// rows mostly go to the model's writer goes on there.
std::shared_ptr<Connection> MakeConnection(const std::string& address,
                                           const std::optional<TlsOptions>& tls = std::nullopt,
                                           const CallMetadata& metadata = {});

// Returns a channel for long streams: it accepts responses of any size and reconnects quickly.
// `address`: "host:port", by default port 7600, an IPv6 address with brackets or without, or a form of gRPC's own:
// "unix:/path", "dns:///name:port"; or several servers of a fleet, "host:port,host:port", of which the first that it can
// connect to is used, and another when that connection ends (with TLS their certificates are for tls->server_name, else
// for the first host). Names of several are looked up now. Connects when first used; for what is no address each call is
// an error of gRPC's. Without `tls` the connection is not encrypted. Each call sends `metadata`.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<TlsOptions>& tls = std::nullopt,
                                           const CallMetadata& metadata = {});

// Returns a policy for unary calls that wait for a server to come back: without a stream gRPC
// reconnects only while a call waits for it, so each wait is a health check that waits for the
// connection. The rest of each wait goes to policy.sleep.
RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection);

// Returns "models/spam" for "spam" and "models/spam", and "aliases/prod" as it is. Does not check that
// the name is valid.
std::string ModelName(std::string_view name);

// Returns "spam" for "spam" and "models/spam".
std::string_view ModelId(std::string_view name);

// Returns 32 hexadecimal digits from the system's source of randomness: globally unique. Threads:
// any.
std::string RandomId();

}  // namespace perceptrond::client
