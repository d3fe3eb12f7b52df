#include "server/rpc/unary.h"

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
    call_.StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return call_.Finish(ToGrpc(MissingRequest()));
    in_flight_.emplace(drain_);
    call_.timing().SwitchAt(Part::kQueue, EventTime());
    handler_(call_, request_);
  }

 private:
  Call& call_;
  Drain& drain_;
  const Handler& handler_;
  grpc::ByteBuffer request_;
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
