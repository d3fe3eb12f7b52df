#include "client/client.h"

#include <utility>

#include "absl/time/clock.h"
#include "client/connection.h"
#include "client/target.h"

namespace perceptrond::client {

absl::StatusOr<Client> Client::Connect(const std::string& address, Options options) {
  if (absl::Status status = ReadAddresses(address).status(); !status.ok()) return status;
  auto connection = MakeConnection(address, options.tls, options.metadata);
  return Client(std::move(connection), std::move(options));
}

Client::Client(std::shared_ptr<Connection> connection, Options options)
    : connection_(std::move(connection)), options_(std::move(options)) {
  options_.retry = Reconnecting(std::move(options_.retry), connection_);
}

absl::Status Client::Call(bool repeatable, const Attempt& attempt) const {
  return CallWithRetry(options_.retry, repeatable, [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout));
    const absl::Status status = ToAbslStatus(attempt(&context));
    // This client does not cancel calls; a server that shuts down does.
    return absl::IsCancelled(status) ? absl::UnavailableError("the server is shutting down")
                                     : status;
  });
}

absl::StatusOr<v1::Model> Client::CreateModel(std::string_view name, const v1::Model& model,
                                              std::string request_id, bool validate_only) const {
  v1::CreateModelRequest request;
  request.set_model_id(std::string(ModelId(name)));
  *request.mutable_model() = model;
  request.set_request_id(request_id.empty() ? RandomId() : std::move(request_id));
  request.set_validate_only(validate_only);
  v1::Model created;
  const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
    return connection_->CreateModel(context, request, &created);
  });
  if (!status.ok()) return status;
  return created;
}

absl::StatusOr<v1::Model> Client::GetModel(std::string_view name, v1::ModelView view) const {
  v1::GetModelRequest request;
  request.set_name(ModelName(name));
  request.set_view(view);
  v1::Model model;
  const auto get = [&] {
    return Call(true, [&](grpc::ClientContext* context) {
      return connection_->GetModel(context, request, &model);
    });
  };
  absl::Status status = get();
  if (view != v1::MODEL_VIEW_WEIGHTS || ErrorReason(status) != "ANSWER_TOO_LARGE") {
    if (!status.ok()) return status;
    return model;
  }
  constexpr int kAttempts = 5;
  request.set_view(v1::MODEL_VIEW_BASIC);
  for (int i = 0; i < kAttempts; ++i) {
    if (status = get(); !status.ok()) return status;
    const int64_t revision = model.revision();
    status = ReadWeights(model);
    if (status.ok() && model.revision() == revision) return model;
    if (!status.ok() && !absl::IsAborted(status)) return status;
  }
  return status.ok() ? absl::AbortedError("the model learns while it is read; freeze it first")
                     : status;
}

absl::Status Client::ReadWeights(v1::Model& model) const {
  v1::ListWeightsRequest request;
  request.set_model(model.name());
  request.set_page_size(1 << 16);
  v1::Weights& weights = *model.mutable_weights();
  return ListWeights(std::move(request), [&](const v1::ListWeightsResponse& page) {
    for (int i = 0; i < page.weights().vectors_size(); ++i) {
      const int vector = static_cast<int>(page.first_vector()) + i;
      if (vector >= weights.vectors_size()) weights.add_vectors();
      weights.mutable_vectors(vector)->MergeFrom(page.weights().vectors(i));
    }
    model.set_revision(page.revision());
    return true;
  });
}

absl::Status Client::ListWeights(
    v1::ListWeightsRequest request,
    const std::function<bool(const v1::ListWeightsResponse&)>& on_page) const {
  do {
    v1::ListWeightsResponse page;
    const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
      return connection_->ListWeights(context, request, &page);
    });
    if (!status.ok()) return status;
    if (!on_page(page)) break;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() const {
  v1::ListModelsResponse all;
  v1::ListModelsRequest request;
  do {
    v1::ListModelsResponse response;
    const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
      return connection_->ListModels(context, request, &response);
    });
    if (!status.ok()) return status;
    request.set_page_token(response.next_page_token());
    response.clear_next_page_token();
    all.MergeFrom(response);
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Model> Client::UpdateModel(const v1::Model& model,
                                              const std::vector<std::string>& paths,
                                              bool validate_only) const {
  v1::UpdateModelRequest request;
  *request.mutable_model() = model;
  request.mutable_model()->set_name(ModelName(model.name()));
  for (const std::string& path : paths) request.mutable_update_mask()->add_paths(path);
  request.set_validate_only(validate_only);
  v1::Model updated;
  const absl::Status status = Call(false, [&](grpc::ClientContext* context) {
    return connection_->UpdateModel(context, request, &updated);
  });
  if (!status.ok()) return status;
  return updated;
}

absl::Status Client::DeleteModel(std::string_view name, std::string_view etag) const {
  v1::DeleteModelRequest request;
  request.set_name(ModelName(name));
  request.set_etag(std::string(etag));
  return Call(false, [&](grpc::ClientContext* context) {
    return connection_->DeleteModel(context, request);
  });
}

absl::StatusOr<v1::Model> Client::FreezeModel(std::string_view name, std::string_view etag) const {
  v1::FreezeModelRequest request;
  request.set_name(ModelName(name));
  request.set_etag(std::string(etag));
  v1::Model model;
  const absl::Status status = Call(false, [&](grpc::ClientContext* context) {
    return connection_->FreezeModel(context, request, &model);
  });
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<v1::Model> Client::UnfreezeModel(std::string_view name,
                                                std::string_view etag) const {
  v1::UnfreezeModelRequest request;
  request.set_name(ModelName(name));
  request.set_etag(std::string(etag));
  v1::Model model;
  const absl::Status status = Call(false, [&](grpc::ClientContext* context) {
    return connection_->UnfreezeModel(context, request, &model);
  });
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<v1::LearnResult> Client::Learn(std::string_view name, v1::ExampleColumns columns,
                                              std::optional<Numbered> numbers) const {
  v1::LearnRequest request;
  request.set_model(ModelName(name));
  *request.mutable_columns() = std::move(columns);
  const bool repeatable = numbers.has_value() && !numbers->producer_id.empty();
  if (repeatable) {
    request.set_producer_id(numbers->producer_id);
    request.set_first_offset(numbers->first_offset);
  }
  v1::LearnResponse response;
  const absl::Status status = Call(repeatable, [&](grpc::ClientContext* context) {
    return connection_->Learn(context, request, &response);
  });
  if (!status.ok()) return status;
  return std::move(*response.mutable_result());
}

absl::StatusOr<v1::PredictResponse> Client::Predict(std::string_view name,
                                                    v1::ExampleColumns columns,
                                                    int64_t min_revision, bool include_class_scores,
                                                    bool include_prediction_ids) const {
  v1::PredictRequest request;
  request.set_model(ModelName(name));
  *request.mutable_columns() = std::move(columns);
  request.set_min_revision(min_revision);
  request.set_include_class_scores(include_class_scores);
  request.set_include_prediction_ids(include_prediction_ids);
  v1::PredictResponse response;
  const absl::Status status = Call(!include_prediction_ids, [&](grpc::ClientContext* context) {
    return connection_->Predict(context, request, &response);
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ExplainResponse> Client::Explain(std::string_view name,
                                                    v1::ExampleColumns columns,
                                                    int32_t max_features,
                                                    std::optional<int32_t> label) const {
  v1::ExplainRequest request;
  request.set_model(ModelName(name));
  *request.mutable_columns() = std::move(columns);
  request.set_max_features(max_features);
  if (label.has_value()) request.set_label(*label);
  v1::ExplainResponse response;
  const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
    return connection_->Explain(context, request, &response);
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<Health> Client::CheckHealth(const std::string& service) const {
  Health health = Health::kUnknown;
  const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
    return connection_->CheckHealth(context, service, &health);
  });
  if (!status.ok()) return status;
  return health;
}

absl::Status Client::WatchModel(std::string_view name, absl::Duration min_interval,
                                const std::function<bool(const v1::Model&)>& on_model,
                                grpc::ClientContext* context) const {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  v1::WatchModelRequest request;
  request.set_name(ModelName(name));
  absl::Duration rest;
  request.mutable_min_interval()->set_seconds(
      absl::IDivDuration(min_interval, absl::Seconds(1), &rest));
  request.mutable_min_interval()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  const auto stream = connection_->WatchModel(context, request);
  v1::WatchModelResponse response;
  while (stream->Read(&response)) {
    if (on_model(response.model())) continue;
    context->TryCancel();
    while (stream->Read(&response)) {
    }
    stream->Finish();
    return absl::OkStatus();
  }
  return ToAbslStatus(stream->Finish());
}

absl::StatusOr<v1::AnalysisResult> Client::Analyze(
    const v1::AnalyzeRequest& request,
    const std::function<bool(const v1::AnalysisProgress&)>& on_progress,
    grpc::ClientContext* context) const {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  v1::AnalyzeRequest named = request;
  named.set_model(ModelName(request.model()));
  const auto stream = connection_->Analyze(context, named);
  v1::AnalyzeResponse response;
  std::optional<v1::AnalysisResult> result;
  while (stream->Read(&response)) {
    if (response.has_result()) result = std::move(*response.mutable_result());
    if (response.has_progress() && !on_progress(response.progress())) context->TryCancel();
  }
  if (absl::Status status = ToAbslStatus(stream->Finish()); !status.ok()) return status;
  if (!result.has_value()) return absl::InternalError("the analysis ended without a result");
  return *std::move(result);
}

absl::StatusOr<v1::Backup> Client::CreateBackup(int32_t keep) const {
  v1::CreateBackupRequest request;
  request.set_keep(keep);
  v1::Backup backup;
  const absl::Status status = Call(false, [&](grpc::ClientContext* context) {
    return connection_->CreateBackup(context, request, &backup);
  });
  if (!status.ok()) return status;
  return backup;
}

absl::StatusOr<std::vector<v1::Backup>> Client::ListBackups() const {
  v1::ListBackupsResponse response;
  const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
    return connection_->ListBackups(context, {}, &response);
  });
  if (!status.ok()) return status;
  return std::vector<v1::Backup>(response.backups().begin(), response.backups().end());
}

absl::Status Client::ListStoredExamples(
    std::string_view name,
    const std::function<bool(const v1::ListStoredExamplesResponse&)>& on_page) const {
  v1::ListStoredExamplesRequest request;
  request.set_model(ModelName(name));
  do {
    v1::ListStoredExamplesResponse response;
    const absl::Status status = Call(true, [&](grpc::ClientContext* context) {
      return connection_->ListStoredExamples(context, request, &response);
    });
    if (!status.ok()) return status;
    if (!on_page(response)) break;
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

}  // namespace perceptrond::client
