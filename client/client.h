// Client: every unary call of a perceptrond server, with deadlines and retries.
//
//   auto client = Client::Connect("127.0.0.1:7600");
//   v1::Model settings;
//   settings.mutable_feature_space()->mutable_dense()->set_dimension(4);
//   absl::StatusOr<v1::Model> model = client.CreateModel("iris", settings);
//   absl::StatusOr<v1::PredictResponse> answer = client.Predict("iris", columns);
//
// To learn or predict many examples use LearnStream and PredictStream on client.connection().
//
// Model names may be given as "iris" or "models/iris".
//
// Errors are the server's, with their details as payloads: read them with ErrorReason() and its
// neighbours (error.h). UNAVAILABLE without a reason: the server could not be reached;
// DEADLINE_EXCEEDED: it did not answer in time. Calls that may safely be repeated are (retry.h says
// which); the others fail with the first error.
//
// Threads: any number at once; a copy shares the connection.
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

struct ClientOptions {
  // How long each attempt of a call may take, > 0. Default 30 s.
  absl::Duration timeout = absl::Seconds(30);
  RetryPolicy retry;
  // Absent: nothing is encrypted.
  std::optional<TlsOptions> tls;
};

// Numbers for a unary Learn, which make it safe to send again.
struct Numbered {
  std::string producer_id;
  // The number of the batch's first example.
  int64_t first_offset = 0;
};

class Client {
 public:
  using Options = ClientOptions;

  // Connects when first used, so this cannot fail.
  static Client Connect(const std::string& address, Options options = {});
  explicit Client(std::shared_ptr<Connection> connection, Options options = {});

  // Creates models/{name} with the settings of `model`. An empty request_id is filled with a random
  // one, so that an answer that gets lost does not turn into ALREADY_EXISTS.
  absl::StatusOr<v1::Model> CreateModel(std::string_view name, const v1::Model& model,
                                        std::string request_id = "",
                                        bool validate_only = false) const;
  absl::StatusOr<v1::Model> GetModel(std::string_view name,
                                     v1::ModelView view = v1::MODEL_VIEW_BASIC) const;
  // Every model, page after page.
  absl::StatusOr<std::vector<v1::Model>> ListModels() const;
  // Changes the fields of model.name that `paths` names ("description", "margin_of_interest"); with
  // model.etag only if it still matches.
  absl::StatusOr<v1::Model> UpdateModel(const v1::Model& model,
                                        const std::vector<std::string>& paths,
                                        bool validate_only = false) const;
  // An empty etag: whatever its state.
  absl::Status DeleteModel(std::string_view name, std::string_view etag = "") const;
  absl::StatusOr<v1::Model> FreezeModel(std::string_view name, std::string_view etag = "") const;
  absl::StatusOr<v1::Model> UnfreezeModel(std::string_view name, std::string_view etag = "") const;

  // Learns one batch, all of it or nothing. Repeated after a lost answer only if numbered.
  absl::StatusOr<v1::LearnResult> Learn(std::string_view name, v1::ExampleColumns columns,
                                        std::optional<Numbered> numbers = std::nullopt) const;
  // min_revision > 0: ABORTED (REVISION_TOO_OLD) rather than an answer from an older state.
  absl::StatusOr<v1::PredictResponse> Predict(std::string_view name, v1::ExampleColumns columns,
                                              int64_t min_revision = 0) const;

  // At most 100 examples; max_features 0: the server's default. FAILED_PRECONDITION (NOT_LINEAR).
  absl::StatusOr<v1::ExplainResponse> Explain(std::string_view name, v1::ExampleColumns columns,
                                              int32_t max_features = 0) const;

  // `service` empty: the server as a whole.
  absl::StatusOr<Health> CheckHealth(const std::string& service = "") const;

  // Calls `on_model` with the model now and whenever it has changed, at most once in
  // `min_interval`, until it returns false (OK) or the watch ends with an error. No deadline, no
  // retry. `context` may be null; given, its owner may end the watch with TryCancel() from any
  // thread (CANCELLED).
  absl::Status WatchModel(std::string_view name, absl::Duration min_interval,
                          const std::function<bool(const v1::Model&)>& on_model,
                          grpc::ClientContext* context = nullptr) const;

  // Analyzes the margin of what the model retains. Calls `on_progress` until it returns false
  // (CANCELLED). No deadline, no retry. `context` as in WatchModel.
  absl::StatusOr<v1::AnalysisResult> Analyze(
      const v1::AnalyzeRequest& request,
      const std::function<bool(const v1::AnalysisProgress&)>& on_progress,
      grpc::ClientContext* context = nullptr) const;
  // Every retained example, page after page, until `on_page` returns false.
  absl::Status ListRetainedExamples(
      std::string_view name,
      const std::function<bool(const v1::ListRetainedExamplesResponse&)>& on_page) const;

  const std::shared_ptr<Connection>& connection() const { return connection_; }

 private:
  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  absl::Status Call(bool repeatable, const Attempt& attempt) const;

  std::shared_ptr<Connection> connection_;
  Options options_;
};

}  // namespace perceptrond::client
