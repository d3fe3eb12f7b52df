#include "server/fleet/prediction_calls.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/fleet/fleet.h"
#include "core/store/store.h"
#include "perceptron/fleet/v1/prediction.pb.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

namespace fleet = ::perceptron::fleet::v1;
using Found = WaitingPredictions::Found;

// How long a server may take to answer.
constexpr std::chrono::seconds kTimeout(2);

std::vector<std::string> ToVector(const google::protobuf::RepeatedPtrField<std::string>& ids) {
  return {ids.begin(), ids.end()};
}

absl::Status Join(Store& store, const fleet::JoinRequest& request, fleet::JoinResponse& response) {
  const std::vector<absl::string_view> ids(request.claimed().begin(), request.claimed().end());
  for (Found& found : store.predictions().Claim(request.model_id(), ids)) {
    fleet::JoinResponse::Prediction& one = *response.add_predictions();
    one.set_reason(ReasonName(found.code));
    one.set_example(std::move(found.example));
  }
  store.predictions().Settle(request.model_id(), ToVector(request.joined()),
                             ToVector(request.released()));
  return absl::OkStatus();
}

Placement PlacementOfJoin(Store& /*store*/, const fleet::JoinRequest& /*request*/) {
  return {WorkSize::kSmall};
}

// Keeps itself until it is answered.
class JoinCall final : public WriterCall, public std::enable_shared_from_this<JoinCall> {
 public:
  using Done = std::function<void(std::vector<Found>)>;

  JoinCall(WriterCalls& calls, const std::string& address, uint64_t model_id, int64_t epoch,
           size_t claimed, Done done)
      : WriterCall(model_id, epoch),
        calls_(calls),
        claimed_(claimed),
        done_(std::move(done)),
        channel_(calls.ChannelTo(address)),
        stub_(channel_) {}

  void Start(const fleet::JoinRequest& request) {
    if (!SerializeMessage(request, request_).ok()) return Answer(/*ok=*/false);
    context_.set_deadline(std::chrono::system_clock::now() + kTimeout);
    stub_.UnaryCall(
        &context_, kPredictionsPath, {}, &request_, &response_,
        [self = shared_from_this()](const grpc::Status& status) { self->Answer(status.ok()); });
  }
  void End(const absl::Status& /*why*/) override { context_.TryCancel(); }

 private:
  // It may answer the next time: the fleet takes it for alive.
  void Answer(bool ok) {
    std::vector<Found> found(claimed_);
    fleet::JoinResponse response;
    for (Found& one : found) one.unanswered = !ok;
    if (ok && ParseMessage(response_, std::numeric_limits<size_t>::max(), response).ok()) {
      const size_t answered = std::min<size_t>(found.size(), response.predictions_size());
      for (size_t i = 0; i < answered; ++i) {
        fleet::JoinResponse::Prediction& one = *response.mutable_predictions(static_cast<int>(i));
        if (one.reason().empty()) {
          found[i] = {ValidationCode::kNone, std::move(*one.mutable_example())};
        } else if (one.reason() == ReasonName(ValidationCode::kPredictionExpired)) {
          found[i].code = ValidationCode::kPredictionExpired;
        }
      }
    }
    done_(std::move(found));
    calls_.Remove(*this);
  }

  WriterCalls& calls_;
  const size_t claimed_;
  const Done done_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
};

}  // namespace

Call::Method AnswerPredictionCalls(const Backend& backend) {
  return UnaryMethods(backend)(Join, PlacementOfJoin);
}

void PredictionCalls::Call(uint32_t server, uint64_t model_id,
                           const WaitingPredictions::Exchange& exchange,
                           std::function<void(std::vector<Found>)> done) {
  std::shared_ptr<JoinCall> call;
  {
    MutexLock lock(&mutex_);
    if (!stopped_) {
      const std::string address = store_.fleet()->FindAddress(
          [server](const std::string& known) { return ServerTag(known) == server; });
      if (!address.empty()) {
        call = std::make_shared<JoinCall>(calls_, address, model_id,
                                          store_.fleet()->WriterOf(model_id).epoch,
                                          exchange.claimed.size(), done);
        calls_.Add(call);
      }
    }
  }
  if (call == nullptr) return done(std::vector<Found>(exchange.claimed.size()));
  fleet::JoinRequest request;
  request.set_model_id(model_id);
  request.mutable_claimed()->Assign(exchange.claimed.begin(), exchange.claimed.end());
  request.mutable_joined()->Assign(exchange.joined.begin(), exchange.joined.end());
  request.mutable_released()->Assign(exchange.released.begin(), exchange.released.end());
  call->Start(request);
}

void PredictionCalls::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace perceptrond
