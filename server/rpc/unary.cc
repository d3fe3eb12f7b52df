#include "server/rpc/unary.h"

#include <atomic>
#include <optional>

namespace perceptrond {
namespace {

using Handler = std::function<void(Call&, grpc::ByteBuffer&)>;

class OneRequest final : public Reactor {
 public:
  OneRequest(Call& call, Drain& drain, const Handler& handler)
      : call_(call), drain_(drain), handler_(handler) {}

  void Start() {
    if (call_.slow_calls().enabled()) call_.timing().Start(Part::kReceive, EventTime());
    call_.StartReadRequest(&request_);
  }
  void OnReadDone(bool ok) override {
    if (decided_.exchange(true)) return;
    if (!ok) return call_.Finish(ToGrpc(MissingRequest()));
    in_flight_.emplace(drain_);
    call_.timing().SwitchAt(Part::kQueue, EventTime());
    handler_(call_, request_);
  }
  void OnRequestTimeout() override {
    if (!decided_.exchange(true)) call_.Finish(ToGrpc(RequestTimeout()));
  }

 private:
  Call& call_;
  Drain& drain_;
  const Handler& handler_;
  grpc::ByteBuffer request_;
  // Whether the request has arrived or its time is over.
  std::atomic<bool> decided_{false};
  std::optional<Drain::InFlightCall> in_flight_;
};

}  // namespace

void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& response) {
  if (status.ok()) {
    call.FinishWith(response);
  } else {
    call.Finish(ToGrpc(status));
  }
}

Call::Method OnRequest(Drain& drain, Handler handler) {
  return [&drain, handler = std::move(handler)](Call& call) {
    const auto reactor = std::make_shared<OneRequest>(call, drain, handler);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond
