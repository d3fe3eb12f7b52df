#include "server/rpc/unary.h"

#include <optional>

namespace perceptrond {
namespace {

using Answer = std::function<void(Call&, grpc::ByteBuffer&)>;

class OneRequest final : public Reactor {
 public:
  OneRequest(Call& call, Drain& drain, const Answer& answer)
      : call_(call), drain_(drain), answer_(answer) {}

  void Start() { call_.StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return call_.Finish(ToGrpc(NoRequest()));
    visit_.emplace(drain_);
    answer_(call_, request_);
  }

 private:
  Call& call_;
  Drain& drain_;
  const Answer& answer_;
  grpc::ByteBuffer request_;
  std::optional<Drain::Visit> visit_;
};

}  // namespace

void FinishUnary(Call& call, const absl::Status& status, const grpc::ByteBuffer& answer) {
  if (status.ok()) {
    call.FinishWith(answer);
  } else {
    call.Finish(ToGrpc(status));
  }
}

Call::Method OnRequest(Drain& drain, Answer answer) {
  return [&drain, answer = std::move(answer)](Call& call) {
    const auto reactor = std::make_shared<OneRequest>(call, drain, answer);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond
