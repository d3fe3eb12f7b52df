#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/joined_examples.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/nested_examples.h"
#include "server/sessions/placement.h"
#include "server/sessions/stream_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

using LearnExamplesRequest = RequestWithExamples<v1::LearnRequest>;

// Learns the examples of a unary request. They are durable only after the commit that the caller
// submits for `model`; then the predictions in `claimed` are joined, unless that is null.
// `uncommitted_bytes`: LearnOutcome's.
absl::Status LearnExamples(Store& store, const LearnExamplesRequest& examples,
                           v1::LearnResult& result, std::shared_ptr<Model>& model,
                           std::shared_ptr<ClaimedPredictions>& claimed,
                           size_t& uncommitted_bytes) {
  const v1::LearnRequest& request = examples.message;
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckResultDetail(request.result_detail()); !status.ok()) return status;
  if (absl::Status status = CheckId(request.producer_id(), "producer_id"); !status.ok())
    return status;
  if (request.producer_id().empty() && request.has_first_offset()) {
    return InvalidField("INVALID_FIELD", "first_offset",
                        "is the offset of a producer's example; set producer_id too");
  }
  if (!request.producer_id().empty() && !request.has_first_offset()) {
    return InvalidField("INVALID_FIELD", "first_offset",
                        "is missing; give the offset of the batch's first example, from 0");
  }
  absl::StatusOr<std::shared_ptr<Model>> acquired = store.Acquire(request.model());
  if (!acquired.ok()) return acquired.status();
  model = *acquired;
  if (absl::Status writable = model->core().CheckWritable(); !writable.ok()) return writable;
  auto producer = std::make_shared<Producer>("");
  if (!request.producer_id().empty()) {
    absl::StatusOr<std::shared_ptr<Producer>> found =
        model->ledger().FindProducer(request.producer_id());
    if (!found.ok()) return found.status();
    producer = *found;
  }
  ExampleBatch batch;
  JoinedExamples joined;
  const MutexLock turn(&producer->turn);
  const std::optional<int64_t> first_offset =
      request.producer_id().empty() ? std::nullopt : std::optional(request.first_offset());
  const auto rows_before = [&] {
    producer->turn.AssertHeld();
    return RowsBefore(producer->position().next_offset, first_offset.value_or(0));
  };
  const size_t known = rows_before();
  absl::Status status;
  if (NamesPredictions(examples)) {
    claimed = std::make_shared<ClaimedPredictions>(store.predictions(), model->id());
    status = joined.Read(examples, known, *claimed);
    if (status.ok()) status = batch.ReadJoined(joined, model->settings());
  } else {
    status = batch.Read(examples, model->settings(), ExampleBatch::Use::kLearn);
  }
  if (!status.ok()) return status;
  LearnCall call;
  call.batch = batch.batch();
  call.row_errors = batch.row_errors();
  call.producer = producer.get();
  call.first_offset = first_offset;
  if (claimed != nullptr) call.predictions = claimed->kept();
  call.detail = request.result_detail() != v1::RESULT_DETAIL_UPDATES;
  call.all_or_nothing = true;
  LearnOutcome outcome;
  status = model->Learn(call, outcome);
  if (claimed != nullptr) claimed->Keep(known, rows_before(), outcome.row_errors);
  if (absl::IsInvalidArgument(status) && !outcome.row_errors.empty())
    return ToStatus(outcome.row_errors[0], batch);
  uncommitted_bytes = outcome.uncommitted_bytes;
  if (status.ok()) ToProto(outcome, batch, model->settings(), call.detail, result);
  return status;
}

// What a commit calls with its outcome.
auto JoinOnceDurable(std::shared_ptr<ClaimedPredictions> claimed) {
  return [claimed = std::move(claimed)](const absl::Status& durable) {
    if (durable.ok() && claimed != nullptr) claimed->Join();
  };
}

// Finishes the call once the examples are learned and durable.
void Learn(const Backend& backend, Call& call, const LearnExamplesRequest& request) {
  v1::LearnResponse response;
  std::shared_ptr<Model> model;
  std::shared_ptr<ClaimedPredictions> claimed;
  size_t uncommitted_bytes = 0;
  absl::Status status = WithinMemory([&] {
    return backend.drain.draining()
               ? DrainingError()
               : LearnExamples(backend.store, request, *response.mutable_result(), model, claimed,
                               uncommitted_bytes);
  });
  // Rows that were learned before the work was stopped become durable all the same.
  if (Stopped() && model != nullptr)
    backend.store.committer().Submit(model, JoinOnceDurable(claimed));
  if (!status.ok()) return call.Finish(ToGrpc(status));
  // The examples are learned: they are committed even if the response cannot be sent.
  grpc::ByteBuffer bytes;
  status = WithinMemory([&] { return SerializeMessage(response, bytes); });
  // By the time of the commit the request is gone.
  call.memory().Set(MemoryUse::kRequests, uncommitted_bytes);
  call.memory().Set(MemoryUse::kAnswers, bytes.Length());
  // A call claims no position, as a stream does: it is durable when it is acknowledged.
  const bool has_position = !request.message.producer_id().empty();
  if (!has_position && claimed == nullptr && backend.store.committer().Defer(model))
    return FinishUnary(call, status, bytes);
  call.timing().Switch(Part::kCommit);
  backend.store.committer().Submit(
      std::move(model),
      [&call, status, bytes, claimed](const absl::Status& durable) {
        JoinOnceDurable(claimed)(durable);
        FinishUnary(call, durable.ok() ? status : durable, bytes);
      },
      has_position);
}

Placement PlacementOfLearn(Store& store, const LearnExamplesRequest& request) {
  Placement placement = PlacementOfExamples(store, request);
  const std::shared_ptr<Model> model = store.GetIfLoaded(request.model());
  if (model != nullptr && MayAskServers(store, *model) && NamesPredictions(request))
    return {WorkSize::kLarge};
  // A named producer may have to wait for its turn.
  if (!request.message.producer_id().empty()) placement.can_run_inline = false;
  return placement;
}

}  // namespace

void AddLearningService(Router& router, const Backend& backend) {
  const auto learn = [backend](Call& call, const LearnExamplesRequest& request) {
    Learn(backend, call, request);
  };
  router.AddService("perceptron.v1.LearningService",
                    {{"Learn", OnRequest<LearnExamplesRequest>(backend, learn, PlacementOfLearn)},
                     {"LearnStream", OnStream<LearnSession>(backend)}});
}

}  // namespace perceptrond
