#include "server/rpc/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"

namespace perceptrond {
namespace {

constexpr absl::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
constexpr absl::string_view kHealthWatch = "/grpc.health.v1.Health/Watch";
// Calls beyond the limits that have room of their own: short ones, by which the server is probed and
// managed.
constexpr size_t kReservedPerConnection = 16;
constexpr size_t kReserved = 256;

// How many reserves a call may use: a probe has one more than management.
size_t ReservesOf(absl::string_view path) {
  if (path == kHealthCheck) return 2;
  const bool is_management = absl::StartsWith(path, "/perceptron.v1.ModelService/") &&
                             !absl::EndsWith(path, "/WatchModel");
  return is_management ? 1 : 0;
}

// An address in the form in which gRPC names peers, and in which they are counted.
struct RemoteName {
  std::string peer;
  std::string address;
};

RemoteName NameOfV4(const in_addr& host, in_port_t port) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &host, text, sizeof text);
  const bool loopback = ntohl(host.s_addr) >> 24 == 127;
  return {absl::StrCat("ipv4:", text, ":", ntohs(port)), loopback ? "" : text};
}

RemoteName NameOf(const SocketAddress& remote) {
  if (remote.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(remote.storage);
    return NameOfV4(v4.sin_addr, v4.sin_port);
  }
  // A Unix socket: all its connections have one name.
  if (remote.family() != AF_INET6) return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(remote.storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr host;
    std::memcpy(&host, v6.sin6_addr.s6_addr + 12, sizeof host);
    return NameOfV4(host, v6.sin6_port);
  }
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  // The scope of a link-local address, as gRPC writes it, would be part of the name.
  std::string peer = v6.sin6_scope_id == 0
                         ? absl::StrCat("ipv6:%5B", text, "%5D:", ntohs(v6.sin6_port))
                         : std::string();
  if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) return {std::move(peer), ""};
  in6_addr network = v6.sin6_addr;
  std::memset(network.s6_addr + 8, 0, 8);
  inet_ntop(AF_INET6, &network, text, sizeof text);
  return {std::move(peer), text};
}

absl::Status TooMany(absl::string_view reason, absl::string_view where, absl::string_view what,
                     absl::string_view option, size_t limit, absl::string_view part = "") {
  return WithRetry(MakeError(absl::StatusCode::kResourceExhausted, reason,
                             absl::StrCat(where, " has reached ", part, option, " (", limit,
                                          "): end some ", what, ", or raise ", option),
                             {{"option", std::string(option)}, {"limit", absl::StrCat(limit)}}),
                   absl::Seconds(1));
}

absl::Status TooManyStreams(absl::string_view where, absl::string_view option, size_t limit) {
  return TooMany("TOO_MANY_STREAMS", where, "calls in flight", option, limit);
}

}  // namespace

const char* RefusalReasonName(RefusalReason reason) {
  constexpr std::array<const char*, kRefusalReasons> kNames = {
      "max_connections", "max_connections_per_address", "descriptors"};
  return kNames[static_cast<size_t>(reason)];
}

const char* CloseReasonName(CloseReason reason) {
  constexpr std::array<const char*, kCloseReasons> kNames = {"no_call", "unfinished_bytes",
                                                             "receive_timeout", "resets", "memory"};
  return kNames[static_cast<size_t>(reason)];
}

Connection::Counts Connection::counts() const {
  Counts counts;
  // In this order: a call that has ended had begun.
  const uint64_t ended = ended_.load(std::memory_order_acquire);
  counts.begun = begun_.load(std::memory_order_relaxed);
  counts.in_flight = counts.begun - ended;
  counts.cancelled = cancelled_.load(std::memory_order_relaxed);
  counts.message_bytes = message_bytes_.load(std::memory_order_relaxed);
  counts.progress = progress_.load(std::memory_order_relaxed);
  return counts;
}

std::shared_ptr<Connection> Connections::Insert(std::string peer, std::string address,
                                                std::optional<RefusalReason> refusal) {
  auto connection = std::make_shared<Connection>(std::move(peer), std::move(address), refusal);
  if (refusal.has_value()) {
    ++open_refused_;
  } else {
    ++open_;
    ++accepted_;
    if (!connection->address().empty()) ++by_address_[connection->address()];
  }
  if (!connection->peer().empty()) by_peer_[connection->peer()] = connection;
  return connection;
}

std::optional<RefusalReason> Connections::RefusalOf(const std::string& address) const {
  if (open_ >= limits_.connections) return RefusalReason::kConnections;
  const auto found = by_address_.find(address);
  if (found != by_address_.end() && found->second >= limits_.connections_per_address)
    return RefusalReason::kConnectionsPerAddress;
  return std::nullopt;
}

std::shared_ptr<Connection> Connections::Add(const SocketAddress& remote) {
  RemoteName name = NameOf(remote);
  MutexLock lock(&mutex_);
  const std::optional<RefusalReason> refusal = RefusalOf(name.address);
  if (refusal.has_value()) {
    OnRefused(*refusal);
    // A call is known to be on the connection by its peer alone.
    if (open_refused_ >= limits_.open_refused || name.peer.empty()) return nullptr;
  }
  return Insert(std::move(name.peer), std::move(name.address), refusal);
}

std::shared_ptr<Connection> Connections::AddOwn(const SocketAddress& remote) {
  RemoteName name = NameOf(remote);
  MutexLock lock(&mutex_);
  return Insert(std::move(name.peer), std::move(name.address), std::nullopt);
}

void Connections::Remove(const Connection& connection) {
  MutexLock lock(&mutex_);
  if (connection.refusal().has_value()) {
    --open_refused_;
  } else {
    --open_;
    const auto address = by_address_.find(connection.address());
    if (address != by_address_.end() && --address->second == 0) by_address_.erase(address);
  }
  // A newer connection may have the same port already.
  const auto peer = by_peer_.find(connection.peer());
  if (peer != by_peer_.end() && peer->second.get() == &connection) by_peer_.erase(peer);
}

void Connections::OnRefused(RefusalReason reason) {
  refused_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
}

void Connections::OnClosed(CloseReason reason) {
  closed_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
}

absl::Status Connections::TooManyConnections(RefusalReason refusal) const {
  return refusal == RefusalReason::kConnectionsPerAddress
             ? TooMany("TOO_MANY_CONNECTIONS", "this address", "connections",
                       "--max-connections-per-address", limits_.connections_per_address)
             : TooMany("TOO_MANY_CONNECTIONS", "the server", "connections", "--max-connections",
                       limits_.connections);
}

absl::Status Connections::BeginCall(const std::string& peer, absl::string_view path,
                                    std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(&mutex_);
    const auto found = by_peer_.find(peer);
    connection = found == by_peer_.end() ? nullptr : found->second;
  }
  const size_t reserves = ReservesOf(path);
  const uint64_t watches =
      path == kHealthWatch ? health_watches_.fetch_add(1, std::memory_order_relaxed) : 0;
  const uint64_t streams = streams_.fetch_add(1, std::memory_order_relaxed);
  uint64_t on_connection = 0;
  if (connection != nullptr) {
    on_connection = connection->begun_.fetch_add(1, std::memory_order_relaxed) -
                    connection->ended_.load(std::memory_order_relaxed);
    if (connection->refusal().has_value() && path != kHealthCheck)
      return TooManyConnections(*connection->refusal());
  }
  if (on_connection >= limits_.streams_per_connection + reserves * kReservedPerConnection) {
    streams_refused_connection_.fetch_add(1, std::memory_order_relaxed);
    return TooManyStreams("this connection", "--max-streams-per-connection",
                          limits_.streams_per_connection);
  }
  if (streams >= limits_.streams + reserves * kReserved) {
    streams_refused_all_.fetch_add(1, std::memory_order_relaxed);
    return TooManyStreams("the server", "--max-streams", limits_.streams);
  }
  if (watches >= MostHealthWatches()) {
    streams_refused_all_.fetch_add(1, std::memory_order_relaxed);
    return TooMany("TOO_MANY_STREAMS", "Health.Watch", "of its calls", "--max-streams",
                   limits_.streams, "a quarter of ");
  }
  return absl::OkStatus();
}

void Connections::EndCall(Connection* connection, absl::string_view path, bool cancelled) {
  if (path == kHealthWatch) health_watches_.fetch_sub(1, std::memory_order_relaxed);
  streams_.fetch_sub(1, std::memory_order_relaxed);
  if (connection == nullptr) return;
  if (cancelled) {
    connection->cancelled_.fetch_add(1, std::memory_order_relaxed);
  } else {
    connection->OnProgress();
  }
  connection->ended_.fetch_add(1, std::memory_order_release);
}

Connections::Stats Connections::stats() const {
  Stats stats;
  for (size_t i = 0; i < kRefusalReasons; ++i)
    stats.refused[i] = refused_[i].load(std::memory_order_relaxed);
  for (size_t i = 0; i < kCloseReasons; ++i)
    stats.closed[i] = closed_[i].load(std::memory_order_relaxed);
  stats.streams = streams_.load(std::memory_order_relaxed);
  stats.streams_refused_connection = streams_refused_connection_.load(std::memory_order_relaxed);
  stats.streams_refused_all = streams_refused_all_.load(std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  stats.open = open_;
  stats.accepted = accepted_;
  return stats;
}

}  // namespace perceptrond
