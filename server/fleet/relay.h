// Runs calls on other servers of the fleet: each message is passed on as it is, in both directions, one at a time, so
// that a slow side holds the other back.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/sync/mutex.h"
#include "server/rpc/call.h"
#include "server/rpc/drain.h"

namespace perceptrond {

class Relay;
struct Destination;

// Metadata of a relayed call: whose it is, which the server that received it has checked.
inline constexpr char kRelayedPrincipal[] = "perceptrond-principal";

// Thread contract: safe for any number of threads. Everything must outlive the calls.
class Relays {
 public:
  // `name`: in the other servers' certificates; empty: that of their address.
  Relays(Drain& drain, std::shared_ptr<grpc::ChannelCredentials> credentials, std::string name,
         size_t max_message_bytes)
      : drain_(drain),
        credentials_(std::move(credentials)),
        name_(std::move(name)),
        max_message_bytes_(max_message_bytes) {}

  // Runs the call there. A stream ends when the drain begins, another call goes on.
  void Run(Call& call, const Destination& to, bool is_stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the calls whose model has another writer now: the one before may never answer.
  void EndStale(const std::function<int64_t(uint64_t model_id)>& epoch_of)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);

  friend class Relay;

  Drain& drain_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::string name_;
  const size_t max_message_bytes_;
  Mutex mutex_;
  // By address. Servers are few.
  absl::flat_hash_map<std::string, std::shared_ptr<grpc::Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
  // The relays under way.
  absl::flat_hash_map<const Relay*, std::weak_ptr<Relay>> relays_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
