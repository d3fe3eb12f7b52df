// Client: the unary calls of a perceptrond server, with deadlines and retries.
//
//   absl::StatusOr<Client> client = Client::Connect("127.0.0.1:7600");
//   v1::Model settings;
//   settings.mutable_feature_space()->mutable_dense()->set_dimension(4);
//   absl::StatusOr<v1::Model> model = client->CreateModel("iris", settings);
//   absl::StatusOr<v1::PredictResponse> answer = client->Predict("iris", columns);
//
// For many examples use LearnStream and PredictStream with client->connection().
//
// Model names are "iris" or "models/iris", or in the place of a model "aliases/prod" (management.h).
//
// Methods return the server's errors with their details as payloads, which ErrorReason() and the
// other functions of error.h read. UNAVAILABLE without a reason: the server could not be reached.
// DEADLINE_EXCEEDED: it did not answer in time. Calls that are safe to repeat are retried
// (retry.h); the others return the first error.
//
// Threads: all methods may be called concurrently. Copies share the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/error.h"
#include "client/retry.h"

namespace perceptrond::client {

// A plain value.
struct ClientOptions {
  // Longest time of each attempt of a call, > 0. Default 30 s.
  absl::Duration timeout = absl::Seconds(30);
  RetryPolicy retry;
  // Absent: no TLS.
  std::optional<TlsOptions> tls;
  CallMetadata metadata;
};

// Producer and offset of a batch for Client::Learn, which make it safe to repeat.
struct Numbered {
  std::string producer_id;
  // Offset of the first example in the producer's stream, >= 0.
  int64_t first_offset = 0;
};

class Client {
 public:
  using Options = ClientOptions;

  // Returns a client of the server at `address`, as MakeConnection() takes it. Connects with the first call.
  // INVALID_ARGUMENT: it is no address.
  static absl::StatusOr<Client> Connect(const std::string& address, Options options = {});
  explicit Client(std::shared_ptr<Connection> connection, Options options = {});

  // Creates models/{name} with the settings of `model`. An empty request_id is replaced by a random
  // one, so that a retry after a lost answer does not return ALREADY_EXISTS. `validate_only`:
  // checks the settings without creating the model. ALREADY_EXISTS, INVALID_ARGUMENT.
  absl::StatusOr<v1::Model> CreateModel(std::string_view name, const v1::Model& model,
                                        std::string request_id = "",
                                        bool validate_only = false) const;
  // NOT_FOUND. Large weights are read page by page: ABORTED (REVISION_MISMATCH) if the model learns
  // meanwhile, several times; freeze it then.
  absl::StatusOr<v1::Model> GetModel(std::string_view name,
                                     v1::ModelView view = v1::MODEL_VIEW_BASIC) const;
  // Lists all models, without label names. The result has no page token; `unreachable` has those that cannot be read.
  absl::StatusOr<v1::ListModelsResponse> ListModels() const;
  // Changes the fields in `paths` ("description", "margin_of_interest") of the model model.name.
  // With a non-empty model.etag only if it still matches, else ABORTED (ETAG_MISMATCH). NOT_FOUND.
  absl::StatusOr<v1::Model> UpdateModel(const v1::Model& model,
                                        const std::vector<std::string>& paths,
                                        bool validate_only = false) const;
  // With a non-empty etag only if it still matches, else ABORTED (ETAG_MISMATCH). NOT_FOUND.
  absl::Status DeleteModel(std::string_view name, std::string_view etag = "") const;
  absl::StatusOr<v1::Model> FreezeModel(std::string_view name, std::string_view etag = "") const;
  absl::StatusOr<v1::Model> UnfreezeModel(std::string_view name, std::string_view etag = "") const;

  // Learns one batch, completely or not at all. Retried after a lost answer only with `numbers`.
  // INVALID_ARGUMENT: a row has a validation error. NOT_FOUND, FAILED_PRECONDITION (MODEL_FROZEN).
  absl::StatusOr<v1::LearnResult> Learn(std::string_view name, v1::ExampleColumns columns,
                                        std::optional<Numbered> numbers = std::nullopt) const;
  // min_revision > 0: ABORTED (REVISION_TOO_OLD) if the model is older. INVALID_ARGUMENT: a row has
  // a validation error. NOT_FOUND. include_class_scores: at most 2^20 scores, else
  // INVALID_ARGUMENT. include_prediction_ids: the server keeps the features until Learn gets labels
  // for the ids (ExampleColumns.prediction_ids); not retried then.
  absl::StatusOr<v1::PredictResponse> Predict(std::string_view name, v1::ExampleColumns columns,
                                              int64_t min_revision = 0,
                                              bool include_class_scores = false,
                                              bool include_prediction_ids = false) const;

  // At most 100 examples. max_features: most contributions listed, 0: the server's default.
  // FAILED_PRECONDITION (NOT_LINEAR): the model's score is not a sum of contributions.
  absl::StatusOr<v1::ExplainResponse> Explain(std::string_view name, v1::ExampleColumns columns,
                                              int32_t max_features = 0,
                                              std::optional<int32_t> label = std::nullopt) const;

  // Backs up all models on the server, and deletes all backups but the newest `keep`, unless that is 0.
  // Not retried. FAILED_PRECONDITION (BACKUPS_OFF).
  absl::StatusOr<v1::Backup> CreateBackup(int32_t keep = 0) const;
  // All backups, oldest first.
  absl::StatusOr<std::vector<v1::Backup>> ListBackups() const;

  // The health of one service, or with an empty name of the whole server.
  absl::StatusOr<Health> CheckHealth(const std::string& service = "") const;

  // Calls `on_model` with the model, without label names, now and whenever it has changed, at most once per
  // `min_interval`, until it returns false (OK) or the watch ends with an error. No deadline, no
  // retry. `context` may be null; else TryCancel() on it, from any thread, ends the watch
  // (CANCELLED).
  absl::Status WatchModel(std::string_view name, absl::Duration min_interval,
                          const std::function<bool(const v1::Model&)>& on_model,
                          grpc::ClientContext* context = nullptr) const;

  // Analyzes the margin of the stored examples. Calls `on_progress` until it returns false
  // (CANCELLED). No deadline, no retry. `context` as in WatchModel.
  absl::StatusOr<v1::AnalysisResult> Analyze(
      const v1::AnalyzeRequest& request,
      const std::function<bool(const v1::AnalysisProgress&)>& on_progress,
      grpc::ClientContext* context = nullptr) const;
  // Reads the weights page by page until `on_page` returns false. FAILED_PRECONDITION (NOT_LINEAR) and ABORTED
  // (REVISION_MISMATCH) as in ModelService.ListWeights.
  absl::Status ListWeights(
      perceptron::v1::ListWeightsRequest request,
      const std::function<bool(const perceptron::v1::ListWeightsResponse&)>& on_page) const;
  // Reads the stored examples page by page until `on_page` returns false.
  absl::Status ListStoredExamples(
      std::string_view name,
      const std::function<bool(const v1::ListStoredExamplesResponse&)>& on_page) const;

  const std::shared_ptr<Connection>& connection() const { return connection_; }

 private:
  // Reads all weights, page by page. Sets the model's revision to theirs.
  absl::Status ReadWeights(v1::Model& model) const;
  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  absl::Status Call(bool repeatable, const Attempt& attempt) const;

  std::shared_ptr<Connection> connection_;
  Options options_;
};

}  // namespace perceptrond::client
