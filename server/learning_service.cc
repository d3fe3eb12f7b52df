#include "server/learning_service.h"

#include <memory>

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
