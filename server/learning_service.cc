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
#include "server/watch_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// INVALID_ARGUMENT, MALFORMED_MESSAGE.
template <typename Message>
absl::Status Parse(const grpc::ByteBuffer& bytes, Message& message) {
  grpc::ByteBuffer own = bytes;
  if (grpc::SerializationTraits<Message>::Deserialize(&own, &message).ok()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "MALFORMED_MESSAGE",
                   absl::StrCat("the request's bytes are no ", message.GetTypeName()));
}

template <typename Message>
void Serialize(const Message& message, grpc::ByteBuffer& bytes) {
  bool own_buffer = false;
  grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer);
}

// Learns a unary batch; durable only after the commit that the caller submits for `model`.
absl::Status LearnBatch(Store& store, const v1::LearnRequest& request, v1::LearnResult& result,
                        std::shared_ptr<Model>& model) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
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
        model->ledger().FindProducer(request.producer_id(), /*owner=*/0);
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
    return ToStatus(outcome.refused[0], batch.form());
  if (status.ok()) ToProto(outcome, batch.form(), call.detail, result);
  return status;
}

}  // namespace

grpc::ServerUnaryReactor* LearningService::Learn(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* bytes,
                                                 grpc::ByteBuffer* answer) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  v1::LearnRequest request;
  v1::LearnResponse response;
  std::shared_ptr<Model> model;
  absl::Status status = drain_.draining() ? DrainingError() : Parse(*bytes, request);
  if (status.ok()) status = LearnBatch(store_, request, *response.mutable_result(), model);
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  Serialize(response, *answer);
  uint64_t waiting = 0;
  drain_.Add([] {}, waiting);
  store_.committer().Submit(std::move(model), [this, reactor, waiting](absl::Status durable) {
    reactor->Finish(ToGrpc(durable));
    drain_.Remove(waiting);
  });
  return reactor;
}

grpc::ServerUnaryReactor* LearningService::Predict(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* bytes,
                                                   grpc::ByteBuffer* answer) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  v1::PredictRequest request;
  v1::PredictResponse response;
  absl::Status status = drain_.draining() ? DrainingError() : Parse(*bytes, request);
  if (status.ok()) status = Predictor(store_).Predict(request.model(), request, response);
  if (status.ok() && response.errors_size() > 0) {
    // A unary call answers all rows or none.
    const google::rpc::Status& first = response.errors(0).status();
    reactor->Finish(
        {static_cast<grpc::StatusCode>(first.code()), first.message(), first.SerializeAsString()});
    return reactor;
  }
  if (status.ok()) Serialize(response, *answer);
  reactor->Finish(ToGrpc(status));
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearningService::LearnStream(
    grpc::CallbackServerContext* /*context*/) {
  return StreamReactor<LearnSession>::Start(std::make_shared<LearnSession>(store_, limits_),
                                            drain_);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearningService::PredictStream(
    grpc::CallbackServerContext* /*context*/) {
  return StreamReactor<PredictSession>::Start(std::make_shared<PredictSession>(store_, limits_),
                                              drain_);
}

grpc::ServerWriteReactor<v1::WatchModelResponse>* LearningService::WatchModel(
    grpc::CallbackServerContext* /*context*/, const v1::WatchModelRequest* request) {
  return WatchReactor::Start(store_, drain_, *request);
}

}  // namespace perceptrond
