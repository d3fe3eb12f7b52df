#include <memory>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/nested_examples.h"
#include "server/sessions/placement.h"
#include "server/sessions/predict_session.h"
#include "server/sessions/stream_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Predicts all rows, or returns the error of the first invalid one.
absl::Status PredictBatch(Store& store, const MessagePredictor::Request& request,
                          v1::PredictResponse& response) {
  if (request.message.name_table_size() > 0)
    return InvalidField("INVALID_FIELD", "name_table_size", "is for streams; leave it out");
  MessagePredictor predictor(store);
  predictor.RefuseRowErrors();
  absl::Status status = predictor.Predict(request.model(), request, response);
  if (!status.ok() || response.row_errors_size() == 0) return status;
  return FromProto(response.row_errors(0).status());
}

constexpr int32_t kMaxContributions = 10'000;
// Keeps the response below 64 MiB, and the model's lock from being held for long.
constexpr size_t kMaxExplained = 100;

absl::Status CheckExplain(const v1::ExplainRequest& request) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  if (request.min_revision() < 0)
    return InvalidField("INVALID_FIELD", "min_revision",
                        absl::StrCat(request.min_revision(), " is below 0; revisions start at 0"));
  if (request.max_features() < 0 || request.max_features() > kMaxContributions) {
    return InvalidField(
        "INVALID_FIELD", "max_features",
        absl::StrCat(request.max_features(), " is not from 0 to ", kMaxContributions));
  }
  return absl::OkStatus();
}

// Explains all rows, or returns the error of the first invalid one.
absl::Status ExplainBatch(Store& store, const RequestWithExamples<v1::ExplainRequest>& examples,
                          v1::ExplainResponse& response) {
  const v1::ExplainRequest& request = examples.message;
  if (absl::Status status = CheckExplain(request); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.model());
  if (!model.ok()) return model.status();
  ExampleBatch batch;
  absl::Status status = batch.Read(examples, (*model)->settings(), ExampleBatch::Use::kPredict);
  if (!status.ok()) return status;
  if (batch.batch().rows() > kMaxExplained) {
    return InvalidField("TOO_MANY_EXAMPLES", request.has_columns() ? "columns" : "examples",
                        absl::StrCat(batch.batch().rows(),
                                     " examples; one request can explain at most ", kMaxExplained));
  }
  ExplainOptions options;
  options.min_revision = static_cast<uint64_t>(request.min_revision());
  if (request.max_features() > 0)
    options.max_features = static_cast<size_t>(request.max_features());
  if (request.has_label()) options.label = request.label();
  ExplainOutcome outcome;
  status = (*model)->Explain(batch.batch(), batch.row_errors(), options, outcome);
  if (!status.ok()) return status;
  if (!outcome.row_errors.empty()) return ToStatus(outcome.row_errors[0], batch);
  ToProto(outcome, response);
  return absl::OkStatus();
}

Placement PlacementOfExplain(Store& store, const RequestWithExamples<v1::ExplainRequest>& request) {
  // It looks at the stored examples, too.
  return {PlacementOfExamples(store, request).size};
}

// A server of a fleet that does not write the model answers once its copy is as new as the request wants.
template <typename Request>
AwaitedRevision AwaitMinRevision(Store& store, const Request& request) {
  const int64_t revision = request.message.min_revision();
  const std::shared_ptr<Model> model = revision > 0 ? store.GetIfLoaded(request.model()) : nullptr;
  return MissingRevision(store, model.get(), request.model(), revision);
}

}  // namespace

void AddPredictionService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.PredictionService",
      {{"Predict", unary(PredictBatch, PlacementOfPrediction<v1::PredictRequest>,
                         AwaitMinRevision<MessagePredictor::Request>)},
       {"PredictStream", OnStream<PredictSession>(backend)},
       {"Explain", unary(ExplainBatch, PlacementOfExplain,
                         AwaitMinRevision<RequestWithExamples<v1::ExplainRequest>>)}});
}

}  // namespace perceptrond
