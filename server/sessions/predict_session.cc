#include "server/sessions/predict_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"

namespace perceptrond {

absl::Status MessagePredictor::Predict(const std::string& model_name, const Request& request,
                                       ::perceptron::v1::PredictResponse& response) {
  if (absl::Status status = CheckModelName(model_name, "model"); !status.ok()) return status;
  const auto min_revision =
      static_cast<uint64_t>(std::max<int64_t>(request.message.min_revision(), 0));
  const absl::StatusOr<std::shared_ptr<const Model>> model =
      handle_.AcquireToPredict(model_name, min_revision);
  if (!model.ok()) return model.status();
  return Predict(**model, request, response);
}

absl::Status MessagePredictor::Predict(const Model& model, const Request& request,
                                       ::perceptron::v1::PredictResponse& response) {
  const ::perceptron::v1::PredictRequest& message = request.message;
  if (message.min_revision() < 0)
    return InvalidField("INVALID_FIELD", "min_revision",
                        absl::StrCat(message.min_revision(), " is below 0; revisions start at 0"));
  if (message.include_prediction_ids() && !model.settings().stored_predictions.has_value()) {
    return InvalidField("INVALID_FIELD", "include_prediction_ids",
                        "the model keeps no predictions for later labels; create it with "
                        "stored_predictions (perceptronctl create --keep-predictions 24h)");
  }
  if (absl::Status status = CheckUnknownFeatures(message.unknown_features()); !status.ok())
    return status;
  absl::Status status = batch_.Read(request, model.settings(), ExampleBatch::Use::kPredict);
  if (!status.ok()) return status;
  Batch batch = batch_.batch();
  batch.refuses_unknown_features =
      message.unknown_features() == ::perceptron::v1::UNKNOWN_FEATURES_REFUSE;
  status = model.Predict(batch, batch_.row_errors(), static_cast<uint64_t>(message.min_revision()),
                         outcome_, message.include_class_scores());
  if (!status.ok()) return status;
  ToProto(outcome_, batch_, response);
  if (std::exchange(named_id_, model.id()) != model.id()) response.set_model(model.name());
  const bool is_refused = refuses_row_errors_ && !outcome_.row_errors.empty();
  return message.include_prediction_ids() && !is_refused ? KeepFeatures(model, response)
                                                         : absl::OkStatus();
}

absl::Status MessagePredictor::KeepFeatures(const Model& model,
                                            ::perceptron::v1::PredictResponse& response) {
  absl::StatusOr<std::vector<std::string>> ids = store_.predictions().Add(
      model.id(),
      CopyFeatures(batch_.batch(), model.settings().example_space, outcome_.row_errors));
  if (!ids.ok()) return JournalError(ids.status(), model.name());
  for (std::string& id : *ids) response.add_prediction_ids(std::move(id));
  return absl::OkStatus();
}

namespace {

// The message alone is refused.
bool IsTooCostly(const absl::Status& status) { return absl::IsResourceExhausted(status); }

absl::Status TableSizeDiffers() {
  return InvalidField("INVALID_FIELD", "name_table_size",
                      "differs from the stream's first message; leave it out, or open another "
                      "stream");
}

}  // namespace

WorkSize PredictSession::SizeOf(const Request& request) const {
  std::shared_ptr<const Model> model = predictor_.GetIfLoaded();
  const std::string& name = request.model().empty() ? model_name_ : request.model();
  if (model == nullptr || name != model_name_) model = ModelHandle::FindInMemory(store_, name);
  return PlacementOfExamples(store_, model.get(), request).size;
}

AwaitedRevision PredictSession::Awaits(const Request& request) const {
  const int64_t revision = request.message.min_revision();
  if (revision <= 0 || store_.fleet() == nullptr) return {};
  const std::string& name = request.model().empty() ? model_name_ : request.model();
  const absl::StatusOr<std::shared_ptr<Model>> model = store_.Acquire(name);
  // What is wrong with it Accept says.
  return model.ok() ? MissingRevision(store_, model->get(), name, revision) : AwaitedRevision();
}

absl::Status PredictSession::Accept(const Request& request, size_t bytes, bool /*more*/) {
  const bool is_first = model_name_.empty();
  const ::perceptron::v1::PredictRequest& message = request.message;
  if (!message.model().empty()) model_name_ = message.model();
  if (model_name_.empty()) {
    return InvalidField("MISSING_MODEL", "model",
                        "is missing; the first message of a stream must name its model");
  }
  Answer answer;
  if (is_first) {
    asked_table_size_ = message.name_table_size();
    predictor_.batch().MakeStreamNames(asked_table_size_);
    answer.response.set_name_table_size(predictor_.batch().name_table_size());
    answer.response.set_max_message_bytes(static_cast<int64_t>(limits_.message_bytes));
  }
  absl::Status status = predictor_.batch().AppendStreamNames(message.columns());
  if (!status.ok()) return status;
  status = message.name_table_size() > 0 && message.name_table_size() != asked_table_size_
               ? TableSizeDiffers()
               : predictor_.Predict(model_name_, request, answer.response);
  if (absl::IsInvalidArgument(status) || absl::IsAborted(status) || IsTooCostly(status)) {
    ToProto(status, *answer.response.mutable_error());
  } else if (!status.ok()) {
    return status;
  }
  answer.bytes = std::max(bytes, MemoryOf(answer.response));
  MutexLock lock(&mutex_);
  name_table_bytes_ = predictor_.batch().stream_names_bytes();
  bytes_ += answer.bytes;
  answers_.push_back(std::move(answer));
  return absl::OkStatus();
}

SessionState PredictSession::Poll(Response* response) {
  MutexLock lock(&mutex_);
  const bool has_response = response != nullptr && !answers_.empty();
  if (has_response) {
    response->Swap(&answers_.front().response);
    bytes_ -= answers_.front().bytes;
    answers_.pop_front();
  }
  SessionState state(limits_, answers_.size(), bytes_);
  state.name_table_bytes = name_table_bytes_;
  state.has_response = has_response;
  state.ready_answers = answers_.size();
  return state;
}

}  // namespace perceptrond
