#include "server/learning_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "google/rpc/status.pb.h"
#include "server/convert.h"
#include "server/example_batch.h"
#include "server/learn_session.h"
#include "server/model_name.h"
#include "server/predict_session.h"
#include "server/quick.h"
#include "server/rpc/router.h"
#include "server/rpc/unary.h"
#include "server/status.h"
#include "server/stream_reactor.h"
#include "server/watch_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Learns a unary batch; durable only after the commit that the caller submits for `model`.
absl::Status LearnBatch(Store& store, const v1::LearnRequest& request, v1::LearnResult& result,
                        std::shared_ptr<Model>& model) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckAnswerDetail(request.answer_detail()); !status.ok()) return status;
  if (request.producer_id().size() > 128)
    return InvalidField("INVALID_FIELD", "producer_id", "has more than 128 bytes");
  if (request.producer_id().empty() && request.first_offset() != 0) {
    return InvalidField("INVALID_FIELD", "first_offset",
                        "numbers a producer's examples; give producer_id too");
  }
  absl::StatusOr<std::shared_ptr<Model>> acquired = store.Acquire(request.model());
  if (!acquired.ok()) return acquired.status();
  model = *acquired;
  auto producer = std::make_shared<Producer>("");
  if (!request.producer_id().empty()) {
    absl::StatusOr<std::shared_ptr<Producer>> found =
        model->ledger().FindProducer(request.producer_id());
    if (!found.ok()) return found.status();
    producer = *found;
  }
  ExampleBatch batch;
  absl::Status status = batch.Read(request.examples(), request.has_columns(), request.columns(),
                                   model->settings(), ExampleBatch::Use::kLearn);
  if (!status.ok()) return status;
  LearnCall call;
  call.batch = batch.batch();
  call.row_errors = batch.row_errors();
  call.producer = producer.get();
  if (!request.producer_id().empty()) call.first_offset = request.first_offset();
  call.detail = request.answer_detail() != v1::ANSWER_DETAIL_UPDATES;
  call.all_or_nothing = true;
  LearnOutcome outcome;
  MutexLock turn(&producer->turn);
  status = model->Learn(call, outcome);
  if (absl::IsInvalidArgument(status) && !outcome.row_errors.empty())
    return ToStatus(outcome.row_errors[0], batch);
  if (status.ok()) ToProto(outcome, batch, call.detail, result);
  return status;
}

// A unary call answers all rows or none.
absl::Status PredictBatch(Store& store, const v1::PredictRequest& request,
                          v1::PredictResponse& response) {
  absl::Status status = BatchPredictor(store).Predict(request.model(), request, response);
  if (!status.ok() || response.errors_size() == 0) return status;
  return FromProto(response.errors(0).status());
}

constexpr int32_t kDefaultContributions = 20;
constexpr int32_t kMostContributions = 10'000;
// So that an answer stays below 64 MiB, and the model's lock is not held for long.
constexpr size_t kMostExplained = 100;

absl::Status CheckExplain(const v1::ExplainRequest& request) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  if (request.min_revision() < 0)
    return InvalidField("INVALID_FIELD", "min_revision", "is below 0");
  if (request.max_features() < 0 || request.max_features() > kMostContributions) {
    return InvalidField("INVALID_FIELD", "max_features",
                        absl::StrCat("is not from 0 to ", kMostContributions));
  }
  return absl::OkStatus();
}

// All rows or none.
absl::Status ExplainBatch(Store& store, const v1::ExplainRequest& request,
                          v1::ExplainResponse& response) {
  if (absl::Status status = CheckExplain(request); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.model());
  if (!model.ok()) return model.status();
  ExampleBatch batch;
  absl::Status status = batch.Read(request.examples(), request.has_columns(), request.columns(),
                                   (*model)->settings(), ExampleBatch::Use::kPredict);
  if (!status.ok()) return status;
  if (batch.batch().rows() > kMostExplained) {
    return InvalidField("TOO_MANY_EXAMPLES", request.has_columns() ? "columns" : "examples",
                        absl::StrCat(batch.batch().rows(), " examples; at most ", kMostExplained,
                                     " are explained at once"));
  }
  const int32_t limit =
      request.max_features() == 0 ? kDefaultContributions : request.max_features();
  ExplainOutcome outcome;
  status = (*model)->Explain(batch.batch(), batch.row_errors(),
                             static_cast<uint64_t>(request.min_revision()),
                             static_cast<size_t>(limit), outcome);
  if (!status.ok()) return status;
  if (!outcome.row_errors.empty()) return ToStatus(outcome.row_errors[0], batch);
  ToProto(outcome, response);
  return absl::OkStatus();
}

// Answers once what was learned is durable.
void Learn(Store& store, const Drain& drain, Call& call, const v1::LearnRequest& request) {
  v1::LearnResponse response;
  std::shared_ptr<Model> model;
  absl::Status status = drain.draining()
                            ? DrainingError()
                            : LearnBatch(store, request, *response.mutable_result(), model);
  if (!status.ok()) return call.Finish(ToGrpc(status));
  // The batch is learned: it is committed even if its answer cannot be sent.
  grpc::ByteBuffer answer;
  status = SerializeMessage(response, answer);
  store.committer().Submit(std::move(model), [&call, status, answer](const absl::Status& durable) {
    FinishUnary(call, durable.ok() ? status : durable, answer);
  });
}

// A producer may have to wait for its turn.
bool IsQuickLearn(Store& store, const v1::LearnRequest& request) {
  return request.producer_id().empty() && HasQuickModel(store, request);
}

template <typename Session>
Call::Method Stream(const Backend& backend, const StreamLimits& limits) {
  return [backend, limits](Call& call) {
    StreamReactor<Session>::Start(call, backend, std::make_shared<Session>(backend.store, limits));
  };
}

}  // namespace

void AddLearningService(Router& router, const Backend& backend, const StreamLimits& limits) {
  const UnaryMethods unary(backend);
  const auto learn = [backend](Call& call, const v1::LearnRequest& request) {
    Learn(backend.store, backend.drain, call, request);
  };
  router.AddService(
      "perceptron.v1.LearningService",
      {{"Learn", OnRequest<v1::LearnRequest>(backend, learn, IsQuickLearn)},
       {"LearnStream", Stream<LearnSession>(backend, limits)},
       {"Predict", unary(PredictBatch, HasQuickModel)},
       {"PredictStream", Stream<PredictSession>(backend, limits)},
       {"Explain", unary(ExplainBatch)},
       {"WatchModel", [backend](Call& call) { WatchReactor::Start(call, backend); }}});
}

}  // namespace perceptrond
