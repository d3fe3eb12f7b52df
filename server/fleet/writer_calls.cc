#include "server/fleet/writer_calls.h"

#include <utility>

#include "core/error/error.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/rpc/trace_context.h"

namespace perceptrond {
namespace {

// How often another server is asked whether it is there, and how long an answer may take.
constexpr int kKeepaliveMs = 1000;
// Where servers come and go at new addresses, as in Kubernetes, those without a call are dropped
// above it.
constexpr size_t kMostChannels = 64;

}  // namespace

CallOrigin::CallOrigin(const Call& call)
    : traceparent(TraceparentOf(call.context())), principal(PrincipalOf(call)) {}

void CallOrigin::AddTo(grpc::ClientContext& context) const {
  if (!traceparent.empty()) context.AddMetadata(kTraceparent, traceparent);
  if (!principal.empty()) context.AddMetadata(kPrincipal, principal);
}

void WriterCalls::UseCredentials(std::shared_ptr<grpc::ChannelCredentials> credentials) {
  MutexLock lock(&mutex_);
  credentials_ = std::move(credentials);
  // Calls keep theirs.
  channels_.clear();
}

std::shared_ptr<grpc::Channel> WriterCalls::ChannelTo(const std::string& address) {
  MutexLock lock(&mutex_);
  if (channels_.size() >= kMostChannels && !channels_.contains(address))
    absl::erase_if(channels_, [](const auto& known) { return known.second.use_count() == 1; });
  std::shared_ptr<grpc::Channel>& channel = channels_[address];
  if (channel == nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(max_answer_bytes_));
    // A proxy of the environment is for other networks than the fleet's.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // Other servers compress nothing.
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    arguments.SetMaxSendMessageSize(TransportMessageBytes(max_message_bytes_));
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // gRPC 1.51 may hang a call that it sends again because its server ended, even once it is
    // cancelled.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    if (!name_.empty()) arguments.SetSslTargetNameOverride(name_);
    // A server that went away at this address may be back soon.
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    // One that is cut off answers no ping: without them a call to it would wait for ever.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    channel = grpc::CreateCustomChannel(address, credentials_, arguments);
    // The end of the last channel joins gRPC's threads for callbacks, and these may free the last
    // call.
    [[maybe_unused]] static const auto* const kept = new std::shared_ptr<grpc::Channel>(channel);
  }
  return channel;
}

void WriterCalls::Add(const std::shared_ptr<WriterCall>& call) {
  MutexLock lock(&mutex_);
  calls_.emplace(call.get(), call);
}

void WriterCalls::Remove(const WriterCall& call) {
  MutexLock lock(&mutex_);
  calls_.erase(&call);
}

std::vector<std::shared_ptr<WriterCall>> WriterCalls::All() {
  std::vector<std::shared_ptr<WriterCall>> calls;
  MutexLock lock(&mutex_);
  for (const auto& [call, weak] : calls_) {
    if (std::shared_ptr<WriterCall> alive = weak.lock()) calls.push_back(std::move(alive));
  }
  return calls;
}

void WriterCalls::EndStale(const std::function<int64_t(uint64_t model_id)>& epoch_of) {
  for (const std::shared_ptr<WriterCall>& call : All()) {
    if (epoch_of(call->model_id) != call->epoch) call->End(WriterChangedError());
  }
}

void WriterCalls::EndAll(const absl::Status& why) {
  for (const std::shared_ptr<WriterCall>& call : All()) call->End(why);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none));
}

}  // namespace perceptrond
