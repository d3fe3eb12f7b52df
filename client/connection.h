// The connection: one virtual method for each RPC the library makes, and nothing more. Client and
// the streams are written against it; tests and instrumentation may stand in its place.
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

#include "client/retry.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"

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
  // grpc.health.v1.Health.Check.
  virtual grpc::Status CheckHealth(grpc::ClientContext*, const std::string& service,
                                   Health* health) = 0;
  virtual std::unique_ptr<grpc::ClientReaderInterface<v1::WatchModelResponse>> WatchModel(
      grpc::ClientContext*, const v1::WatchModelRequest&) = 0;
  virtual std::unique_ptr<grpc::ClientReaderInterface<v1::AnalyzeResponse>> Analyze(
      grpc::ClientContext*, const v1::AnalyzeRequest&) = 0;
  virtual grpc::Status ListRetainedExamples(grpc::ClientContext*,
                                            const v1::ListRetainedExamplesRequest&,
                                            v1::ListRetainedExamplesResponse*) = 0;
  // Prepare the stream; reactor->StartCall() begins it.
  virtual void LearnStream(grpc::ClientContext*, LearnReactor* reactor) = 0;
  virtual void PredictStream(grpc::ClientContext*, PredictReactor* reactor) = 0;
};

// How a client knows its server, and makes itself known. All in PEM form.
struct TlsOptions {
  // The authorities whose word is taken for the server's certificate. Empty: the system's.
  std::string root_certificates;
  // For servers that ask for one: the client's certificate, with those that lead to its authority,
  // and its key. Both or neither.
  std::string certificate_chain;
  std::string private_key;
  // The name that the server's certificate must bear. Empty: the host in the address.
  std::string server_name;
};

// A connection over a channel of the caller's making.
std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel);

// A channel that suits long streams: answers of any size (a model's
// weights may be large), and quick to try again after a connection broke. `address` is as gRPC
// takes it: "host:port", "unix:/path", "dns:///name:port". Connects when first used. Without `tls`
// nothing is encrypted and nobody is authenticated.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const std::optional<TlsOptions>& tls = std::nullopt);

// The policy with waits in which the connection may come back: without streams gRPC goes on
// connecting only while a call waits for it. What is left of a wait then is policy.sleep's.
RetryPolicy Reconnecting(RetryPolicy policy, std::shared_ptr<Connection> connection);

}  // namespace perceptrond::client
