// The open connections and the calls on them: how many there may be, and how far each has come.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/sync/mutex.h"
#include "server/rpc/listening_sockets.h"

namespace perceptrond {

// Why a connection was refused.
enum class RefusalReason : uint8_t { kConnections, kConnectionsPerAddress, kDescriptors };
inline constexpr size_t kRefusalReasons = 3;
// "max_connections", "max_connections_per_address", "descriptors".
const char* RefusalReasonName(RefusalReason reason);

// Why the watchdog closed a connection; see ConnectionWatch.
enum class CloseReason : uint8_t { kNoCall, kUnfinishedBytes, kReceiveTimeout, kResets, kMemory };
inline constexpr size_t kCloseReasons = 5;
// "no_call", "unfinished_bytes", "receive_timeout", "resets", "memory".
const char* CloseReasonName(CloseReason reason);

// What one connection's calls have done. Thread contract: any thread may call any method.
class Connection {
 public:
  // `peer` is as grpc::ServerContext::peer() returns it, empty if that does not tell connections
  // apart; `address` is what the limit per address counts, empty if it does not count this one;
  // `refusal` is absent unless the connection is open only until a call has said why it is refused.
  Connection(std::string peer, std::string address, std::optional<RefusalReason> refusal)
      : peer_(std::move(peer)), address_(std::move(address)), refusal_(refusal) {}

  const std::string& peer() const { return peer_; }
  const std::string& address() const { return address_; }
  std::optional<RefusalReason> refusal() const { return refusal_; }

  // A whole message of this size has arrived.
  void OnMessage(size_t bytes) {
    message_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    OnProgress();
  }
  // A message was sent, or a call ended that was not cancelled.
  void OnProgress() { progress_.fetch_add(1, std::memory_order_relaxed); }

  struct Counts {
    // Messages in both directions, and calls that ended without being cancelled.
    uint64_t progress = 0;
    uint64_t message_bytes = 0;
    // Calls that began, and those of them that the client cancelled.
    uint64_t begun = 0;
    uint64_t cancelled = 0;
    // Calls that have begun and not ended.
    uint64_t in_flight = 0;
  };
  Counts counts() const;

 private:
  friend class Connections;

  const std::string peer_;
  const std::string address_;
  const std::optional<RefusalReason> refusal_;
  std::atomic<uint64_t> progress_{0};
  std::atomic<uint64_t> message_bytes_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> cancelled_{0};
  std::atomic<uint64_t> ended_{0};
};

// Thread contract: any thread may call any method. Must outlive the calls. O(1) throughout.
class Connections {
 public:
  struct Limits {
    size_t connections = 10000;
    // Connections of one IPv4 address, or of the first 64 bits of an IPv6 address.
    size_t connections_per_address = 10000;
    size_t streams_per_connection = 1000;
    size_t streams = 10000;
    // Connections beyond these limits that are open at a time, until a call has said why they are
    // refused; further ones are closed at once.
    size_t open_refused = 32;
  };
  struct Stats {
    uint64_t open = 0;
    uint64_t accepted = 0;
    std::array<uint64_t, kRefusalReasons> refused = {};
    std::array<uint64_t, kCloseReasons> closed = {};
    uint64_t streams = 0;
    // Calls that were refused because there were too many on their connection, or in all.
    uint64_t streams_refused_connection = 0;
    uint64_t streams_refused_all = 0;
  };

  explicit Connections(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }

  // Adds an accepted connection from this address. If a limit is reached that is counted, and the
  // connection has a refusal, or is null if it must be closed at once. Loopback addresses and Unix
  // sockets have no limit per address: a proxy on this machine has every client's connections, and
  // a process on it has other means to do harm.
  std::shared_ptr<Connection> Add(const SocketAddress& remote) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same beyond every limit, for the server's own connections.
  std::shared_ptr<Connection> AddOwn(const SocketAddress& remote) ABSL_LOCKS_EXCLUDED(mutex_);
  // To be called once for each connection that was added.
  void Remove(const Connection& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRefused(RefusalReason reason);
  void OnClosed(CloseReason reason);

  // Begins a call of the connection with this grpc::ServerContext::peer(), which `connection` is
  // set to, or to null if the peer is none of the connections. Must be followed by EndCall, whatever
  // it returns. RESOURCE_EXHAUSTED, with RetryInfo: TOO_MANY_CONNECTIONS if the connection is
  // refused, TOO_MANY_STREAMS if there are too many calls on it or in all. Health.Check, by which
  // supervisors ask, is not refused with its connection; Health.Watch is, by which clients choose
  // another server. Health.Check and the short calls of ModelService have some room beyond the limits
  // on calls; Health.Watch, which those may call who may do nothing else, has a quarter of them.
  absl::Status BeginCall(const std::string& peer, absl::string_view path,
                         std::shared_ptr<Connection>& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // `path` is the call's.
  void EndCall(Connection* connection, absl::string_view path, bool cancelled);

  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::optional<RefusalReason> RefusalOf(const std::string& address) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Connection> Insert(std::string peer, std::string address,
                                     std::optional<RefusalReason> refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TooManyConnections(RefusalReason refusal) const;
  uint64_t MostHealthWatches() const { return std::max<uint64_t>(1, limits_.streams / 4); }

  const Limits limits_;
  std::array<std::atomic<uint64_t>, kRefusalReasons> refused_ = {};
  std::array<std::atomic<uint64_t>, kCloseReasons> closed_ = {};
  std::atomic<uint64_t> streams_{0};
  // Those of Health.Watch.
  std::atomic<uint64_t> health_watches_{0};
  std::atomic<uint64_t> streams_refused_connection_{0};
  std::atomic<uint64_t> streams_refused_all_{0};
  mutable Mutex mutex_;
  uint64_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  // Open beyond the limits, and not in open_.
  uint64_t open_refused_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, uint64_t> by_address_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<Connection>> by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
