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
#include "server/status.h"
#include "server/stream_reactor.h"
#include "server/unary.h"
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
  call.refused = batch.refused();
  call.producer = producer.get();
  if (!request.producer_id().empty()) call.first_offset = request.first_offset();
  call.detail = request.answer_detail() != v1::ANSWER_DETAIL_UPDATES;
  call.all_or_nothing = true;
  LearnOutcome outcome;
  MutexLock turn(&producer->turn);
  status = model->Learn(call, outcome);
  if (absl::IsInvalidArgument(status) && !outcome.refused.empty())
    return ToStatus(outcome.refused[0], batch);
  if (status.ok()) ToProto(outcome, batch, call.detail, result);
  return status;
}

// A unary call answers all rows or none.
absl::Status PredictBatch(Store& store, const v1::PredictRequest& request,
                          v1::PredictResponse& response) {
  absl::Status status = Predictor(store).Predict(request.model(), request, response);
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
  status = (*model)->Explain(batch.batch(), batch.refused(),
                             static_cast<uint64_t>(request.min_revision()),
                             static_cast<size_t>(limit), outcome);
  if (!status.ok()) return status;
  if (!outcome.refused.empty()) return ToStatus(outcome.refused[0], batch);
  ToProto(outcome, response);
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* LearningService::Learn(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* bytes,
                                                 grpc::ByteBuffer* answer) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto visit = std::make_shared<Drain::Visit>(drain_);
  v1::LearnRequest request;
  v1::LearnResponse response;
  std::shared_ptr<Model> model;
  grpc::ByteBuffer own = *bytes;
  absl::Status status =
      drain_.draining() ? DrainingError() : ParseMessage(own, limits_.message_bytes, request);
  if (status.ok()) status = LearnBatch(store_, request, *response.mutable_result(), model);
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  // The batch is learned: it is committed even if its answer cannot be sent.
  status = SerializeMessage(response, *answer);
  store_.committer().Submit(
      std::move(model), [reactor, visit = std::move(visit), status](const absl::Status& durable) {
        reactor->Finish(ToGrpc(durable.ok() ? status : durable));
      });
  return reactor;
}

grpc::ServerUnaryReactor* LearningService::Predict(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* bytes,
                                                   grpc::ByteBuffer* answer) {
  return AnswerUnary<v1::PredictRequest, v1::PredictResponse>(
      context, drain_, limits_.message_bytes, *bytes, *answer,
      [&](const v1::PredictRequest& request, v1::PredictResponse& response) {
        return PredictBatch(store_, request, response);
      });
}

grpc::ServerUnaryReactor* LearningService::Explain(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* bytes,
                                                   grpc::ByteBuffer* answer) {
  return AnswerUnary<v1::ExplainRequest, v1::ExplainResponse>(
      context, drain_, limits_.message_bytes, *bytes, *answer,
      [&](const v1::ExplainRequest& request, v1::ExplainResponse& response) {
        return ExplainBatch(store_, request, response);
      });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearningService::LearnStream(
    grpc::CallbackServerContext* /*context*/) {
  return StreamReactor<LearnSession>::Start(std::make_shared<LearnSession>(store_, limits_), drain_,
                                            limits_.message_bytes);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearningService::PredictStream(
    grpc::CallbackServerContext* /*context*/) {
  return StreamReactor<PredictSession>::Start(std::make_shared<PredictSession>(store_, limits_),
                                              drain_, limits_.message_bytes);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* LearningService::WatchModel(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* bytes) {
  grpc::ByteBuffer own = *bytes;
  v1::WatchModelRequest request;
  const absl::Status status = ParseMessage(own, limits_.message_bytes, request);
  return WatchReactor::Start(store_, drain_, status, request);
}

}  // namespace perceptrond
