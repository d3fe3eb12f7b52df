#include "server/rpc/transport.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace grpc_core::chttp2 {

// As declared by gRPC's src/core/ext/transport/chttp2/transport/flow_control.h: what its tests put
// in place of the window that it computes from probes of the bandwidth. Channel arguments set the
// windows of streams alone and leave that of the connection at 64 KiB.
class TestOnlyTransportTargetWindowEstimatesMocker {
 public:
  virtual ~TestOnlyTransportTargetWindowEstimatesMocker() = default;
  virtual double ComputeNextTargetInitialWindowSizeFromPeriodicUpdate(double current) = 0;
};
extern TestOnlyTransportTargetWindowEstimatesMocker*
    g_test_only_transport_target_window_estimates_mocker;

}  // namespace grpc_core::chttp2

namespace perceptrond {
namespace {

// Descriptors for the journal, metrics, logs, analyses and refused connections: at least this many,
// and one in eight.
constexpr uint64_t kMinReserve = 256;
constexpr uint64_t kMostConnections = 10000;
// gRPC's handle and ours.
constexpr uint64_t kDescriptorsPerConnection = 2;

// A client must have sent its preface and settings, and ended its TLS handshake, within this time.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);
// A client that has vanished is noticed by pings within these times together.
constexpr absl::Duration kKeepaliveTime = absl::Minutes(5);
constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);
// A client that pings more often than this, three times without sending anything else, is sent away.
// Our own ping every ten seconds during calls.
constexpr absl::Duration kMinPingInterval = absl::Seconds(5);
constexpr int kMaxPingStrikes = 2;
constexpr int kMaxMetadataBytes = 8 << 10;
// Beyond --max-streams-per-connection, so that a client that opens too many gets an error. gRPC's
// own limit only makes clients wait.
constexpr int kStreamsBeyondLimit = 128;

// gRPC closes idle connections itself, except those whose client began a call and never finished
// its headers.
constexpr absl::Duration kIdleGrace = absl::Seconds(10);

class FlowWindow final : public grpc_core::chttp2::TestOnlyTransportTargetWindowEstimatesMocker {
 public:
  double ComputeNextTargetInitialWindowSizeFromPeriodicUpdate(double) override { return bytes; }

  std::atomic<double> bytes = 64 << 10;
};

// Fixes the windows of HTTP/2 connections and of their streams, which gRPC would let grow to
// megabytes a stream, for all servers and channels that the process makes from now on. Any thread.
void SetFlowWindow(size_t bytes) {
  // Never deleted: gRPC's threads ask until the process ends.
  static FlowWindow* const window = new FlowWindow;
  window->bytes = static_cast<double>(bytes);
  grpc_core::chttp2::g_test_only_transport_target_window_estimates_mocker = window;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), INT32_MAX));
}

}  // namespace

uint64_t RaiseDescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : soft;
}

absl::StatusOr<Connections::Limits> ConnectionLimits(Connections::Limits asked,
                                                     uint64_t descriptors) {
  const uint64_t reserve = std::max(kMinReserve, descriptors / 8);
  const uint64_t most =
      descriptors < reserve ? 0 : (descriptors - reserve) / kDescriptorsPerConnection;
  if (most == 0 || asked.connections > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max-connections ", asked.connections, " takes ",
        std::max<uint64_t>(asked.connections, 1) * kDescriptorsPerConnection + reserve,
        " open files, and the process may have ", descriptors,
        ": raise its hard limit (ulimit -Hn, LimitNOFILE=), or lower --max-connections"));
  }
  Connections::Limits limits = asked;
  if (limits.connections == 0) limits.connections = std::min(most, kMostConnections);
  if (limits.connections_per_address == 0)
    limits.connections_per_address = std::max<size_t>(1, limits.connections / 4);
  return limits;
}

Transport::Transport(TransportOptions options, std::vector<ListeningAddress> listening,
                     Connections& connections)
    : options_(std::move(options)), connections_(connections) {
  std::vector<ListeningSocket> sockets;
  for (ListeningAddress& one : listening) {
    addresses_.push_back(one.name);
    for (ListeningSocket& socket : one.sockets) {
      targets_.push_back({one.name, socket.address()});
      sockets.push_back(std::move(socket));
    }
  }
  Watchdog::Options watchdog;
  watchdog.limits = {options_.max_receive_bytes, options_.receive_timeout,
                     options_.connection_idle > absl::ZeroDuration()
                         ? options_.connection_idle + kIdleGrace
                         : absl::InfiniteDuration()};
  watchdog.max_resident_bytes = options_.max_resident_bytes;
  watchdog.stream_bytes = options_.window_bytes;
  watchdog_ = std::make_unique<Watchdog>(connections, watchdog);
  Listener::Options listener;
  listener.is_own = [this](const SocketAddress& remote) {
    return probe_ != nullptr && probe_->IsOwn(remote);
  };
  listener.closes_own = options_.encrypted;
  listener.on_second = options_.on_second;
  listener_ =
      std::make_unique<Listener>(std::move(sockets), connections, *watchdog_, std::move(listener));
}

Transport::~Transport() { Stop(); }

absl::StatusOr<std::unique_ptr<Transport>> Transport::Listen(TransportOptions options,
                                                             Connections& connections) {
  std::vector<ListeningAddress> listening;
  for (const std::string& address : options.addresses) {
    absl::StatusOr<ListeningAddress> one = ListenOn(address);
    if (!one.ok()) return one.status();
    listening.push_back(*std::move(one));
  }
  return std::unique_ptr<Transport>(
      new Transport(std::move(options), std::move(listening), connections));
}

void Transport::AddTo(grpc::ServerBuilder& builder,
                      std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ =
      builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
  builder.SetMaxReceiveMessageSize(static_cast<int>(options_.max_receive_bytes));
  builder.SetMaxSendMessageSize(-1);
  const auto set = [&builder](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  };
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS,
      static_cast<int>(connections_.limits().streams_per_connection) + kStreamsBeyondLimit);
  set(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // gRPC would let each stream send as much ahead as the network holds, megabytes on a fast one,
  // and keep it while the stream is not read: the memory budget does not see that.
  SetFlowWindow(options_.window_bytes);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(kHandshakeTimeout));
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, Milliseconds(kMinPingInterval));
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  if (options_.connection_idle > absl::ZeroDuration())
    set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(options_.connection_idle));
  if (options_.connection_age > absl::ZeroDuration()) {
    set(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options_.connection_age));
    set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(options_.connection_age));
  }
}

void Transport::Start() {
  SelfProbe::Options probe;
  probe.interval = options_.probe_interval;
  probe.accepted = [&connections = connections_] {
    const Connections::Stats stats = connections.stats();
    return std::accumulate(stats.refused.begin(), stats.refused.end(), stats.accepted);
  };
  probe.on_failure = options_.on_probe_failure;
  probe_ = std::make_unique<SelfProbe>(std::move(targets_), std::move(probe));
  watchdog_->Start();
  listener_->Start(std::move(acceptor_));
}

void Transport::Stop() {
  // First: it must not take a listener that stops for one that failed.
  if (probe_ != nullptr) probe_->Stop();
  listener_->Stop();
  watchdog_->Stop();
}

}  // namespace perceptrond
