#include <memory>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/message.h"
#include "server/rpc/request_fields.h"
#include "server/rpc/router.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"
#include "server/sessions/stream_reactor.h"
#include "server/sessions/watch_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Learns the examples of a unary request. They are durable only after the commit that the caller
// submits for `model`.
absl::Status LearnBatch(Store& store, const v1::LearnRequest& request, v1::LearnResult& result,
                        std::shared_ptr<Model>& model) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckAnswerDetail(request.answer_detail()); !status.ok()) return status;
  if (request.producer_id().size() > 128) {
    return InvalidField(
        "INVALID_FIELD", "producer_id",
        absl::StrCat("has ", request.producer_id().size(), " bytes; an id has at most 128 bytes"));
  }
  if (request.producer_id().empty() && request.first_offset() != 0) {
    return InvalidField("INVALID_FIELD", "first_offset",
                        "is the offset of a producer's example; set producer_id too");
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

// Predicts all rows, or returns the error of the first invalid one.
absl::Status PredictBatch(Store& store, const v1::PredictRequest& request,
                          v1::PredictResponse& response) {
  absl::Status status = MessagePredictor(store).Predict(request.model(), request, response);
  if (!status.ok() || response.errors_size() == 0) return status;
  return FromProto(response.errors(0).status());
}

constexpr int32_t kDefaultContributions = 20;
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
absl::Status ExplainBatch(Store& store, const v1::ExplainRequest& request,
                          v1::ExplainResponse& response) {
  if (absl::Status status = CheckExplain(request); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.model());
  if (!model.ok()) return model.status();
  ExampleBatch batch;
  absl::Status status = batch.Read(request.examples(), request.has_columns(), request.columns(),
                                   (*model)->settings(), ExampleBatch::Use::kPredict);
  if (!status.ok()) return status;
  if (batch.batch().rows() > kMaxExplained) {
    return InvalidField("TOO_MANY_EXAMPLES", request.has_columns() ? "columns" : "examples",
                        absl::StrCat(batch.batch().rows(),
                                     " examples; one request can explain at most ", kMaxExplained));
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

// Finishes the call once the examples are learned and durable.
void Learn(Store& store, const Drain& drain, Call& call, const v1::LearnRequest& request) {
  v1::LearnResponse response;
  std::shared_ptr<Model> model;
  absl::Status status = drain.draining()
                            ? DrainingError()
                            : LearnBatch(store, request, *response.mutable_result(), model);
  if (!status.ok()) return call.Finish(ToGrpc(status));
  // The examples are learned: they are committed even if the response cannot be sent.
  grpc::ByteBuffer bytes;
  status = SerializeMessage(response, bytes);
  store.committer().Submit(std::move(model), [&call, status, bytes](const absl::Status& durable) {
    FinishUnary(call, durable.ok() ? status : durable, bytes);
  });
}

// A named producer may have to wait for its turn.
bool CanLearnInline(Store& store, const v1::LearnRequest& request) {
  return request.producer_id().empty() && RequestCanRunInline(store, request);
}

template <typename Session>
Call::Method Stream(const Backend& backend) {
  return [backend](Call& call) {
    StreamReactor<Session>::Start(call, backend,
                                  std::make_shared<Session>(backend.store, backend.stream_limits));
  };
}

}  // namespace

void AddLearningService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  const auto learn = [backend](Call& call, const v1::LearnRequest& request) {
    Learn(backend.store, backend.drain, call, request);
  };
  router.AddService(
      "perceptron.v1.LearningService",
      {{"Learn", OnRequest<v1::LearnRequest>(backend, learn, CanLearnInline)},
       {"LearnStream", Stream<LearnSession>(backend)},
       {"Predict", unary(PredictBatch, RequestCanRunInline)},
       {"PredictStream", Stream<PredictSession>(backend)},
       {"Explain", unary(ExplainBatch)},
       {"WatchModel", [backend](Call& call) { WatchReactor::Start(call, backend); }}});
}

}  // namespace perceptrond
