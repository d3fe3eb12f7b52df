#include "server/fleet/relay.h"

#include <grpcpp/generic/generic_stub.h>

#include <iterator>
#include <utility>
#include <vector>

#include "core/error/error.h"
#include "server/access/admission.h"
#include "server/fleet/routing.h"
#include "server/rpc/message.h"
#include "server/rpc/trace_context.h"

namespace perceptrond {

// One relayed call. The call it was received as keeps it, and so does the call it is passed on as, until it is done.
class Relay final : public Reactor, public std::enable_shared_from_this<Relay> {
 public:
  Relay(Relays& relays, Call& call, const Destination& to, std::shared_ptr<grpc::Channel> channel)
      : model_id(to.model_id),
        epoch(to.epoch),
        relays_(relays),
        call_(call),
        channel_(std::move(channel)),
        stub_(channel_),
        upstream_(*this) {}

  const uint64_t model_id;
  const int64_t epoch;

  void Start(bool is_stream) {
    if (const auto deadline = call_.context().deadline(); deadline != deadline.max())
      context_.set_deadline(deadline);
    const auto& metadata = call_.context().client_metadata();
    if (const auto [first, last] = metadata.equal_range(kTraceparent);
        first != last && std::next(first) == last)
      context_.AddMetadata(kTraceparent, std::string(first->second.data(), first->second.size()));
    if (const std::string principal = PrincipalOf(call_.access()); !principal.empty())
      context_.AddMetadata(kRelayedPrincipal, principal);
    self_ = shared_from_this();
    const std::weak_ptr<Relay> weak = self_;
    relays_.drain_.Add(
        [weak, is_stream] {
          const std::shared_ptr<Relay> alive = weak.lock();
          if (alive != nullptr && is_stream) alive->End(DrainingError());
        },
        drain_id_);
    stub_.PrepareBidiStreamingCall(&context_, call_.path(), {}, &upstream_);
    // Messages of the client come while nothing else is under way.
    upstream_.AddHold();
    upstream_.StartRead(&answer_);
    upstream_.StartCall();
    call_.StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    MutexLock lock(&mutex_);
    if (ended_) return;
    if (ok) {
      upstream_.StartWrite(&message_);
    } else {
      upstream_.StartWritesDone();
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) context_.TryCancel();
    // Also for a client that is no longer there: the end of the other call comes with a read that fails.
    upstream_.StartRead(&answer_);
  }
  void OnCancel() override { context_.TryCancel(); }
  void OnDone() override {
    relays_.drain_.Remove(drain_id_);
    MutexLock lock(&relays_.mutex_);
    relays_.relays_.erase(this);
  }

  // Ends the call for this reason.
  void End(const absl::Status& why) {
    {
      MutexLock lock(&mutex_);
      if (why_.ok()) why_ = why;
    }
    context_.TryCancel();
  }

 private:
  class Upstream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Upstream(Relay& relay) : relay_(relay) {}
    void OnReadDone(bool ok) override { relay_.OnAnswer(ok); }
    void OnWriteDone(bool ok) override { relay_.OnPassedOn(ok); }
    void OnDone(const grpc::Status& status) override { relay_.OnEnd(status); }

   private:
    Relay& relay_;
  };

  void OnAnswer(bool ok) {
    if (ok) return call_.StartWrite(answer_);
    MutexLock lock(&mutex_);
    // No answer is being sent to the client: it is read only once the one before was. Nothing more is passed on: the end may come.
    ended_ = true;
    upstream_.RemoveHold();
  }
  void OnPassedOn(bool ok) {
    MutexLock lock(&mutex_);
    // If it failed, the end comes.
    if (ok && !ended_) call_.StartRead(&message_);
  }
  void OnEnd(const grpc::Status& status) {
    const std::shared_ptr<Relay> self = std::move(self_);
    grpc::Status end = status;
    {
      MutexLock lock(&mutex_);
      if (!why_.ok()) {
        end = ToGrpc(why_);
      } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                 status.error_details().empty()) {
        // Of gRPC itself: the server could not be reached.
        end = ToGrpc(WriterUnreachableError(status.error_message()));
      }
    }
    call_.Finish(end);
  }

  Relays& relays_;
  Call& call_;
  uint64_t drain_id_ = 0;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  // Until the other server's end is known.
  std::shared_ptr<Relay> self_;
  // From the client to the other server, and back.
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answer_;
  Mutex mutex_;
  // The other server has no more answers.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Why this server ends the call.
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  Upstream upstream_;
};

void Relays::Run(Call& call, const Destination& to, bool is_stream) {
  const auto relay = std::make_shared<Relay>(*this, call, to, ChannelTo(to.address));
  {
    MutexLock lock(&mutex_);
    relays_.emplace(relay.get(), relay);
  }
  call.Bind(relay);
  relay->Start(is_stream);
}

void Relays::EndStale(const std::function<int64_t(uint64_t model_id)>& epoch_of) {
  std::vector<std::shared_ptr<Relay>> relays;
  {
    MutexLock lock(&mutex_);
    for (const auto& [relay, weak] : relays_) {
      if (std::shared_ptr<Relay> alive = weak.lock()) relays.push_back(std::move(alive));
    }
  }
  for (const std::shared_ptr<Relay>& relay : relays) {
    if (epoch_of(relay->model_id) != relay->epoch) relay->End(WriterChangedError());
  }
}

std::shared_ptr<grpc::Channel> Relays::ChannelTo(const std::string& address) {
  MutexLock lock(&mutex_);
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (channel == nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(TransportMessageBytes(max_message_bytes_));
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    if (!name_.empty()) arguments.SetSslTargetNameOverride(name_);
    // A server that went away at this address may be back soon.
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    channel = grpc::CreateCustomChannel(address, credentials_, arguments);
  }
  return channel;
}

}  // namespace perceptrond
