#include "server/server_parts.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/fleet/fleet.h"
#include "server/config/endpoint.h"
#include "server/config/logging.h"
#include "server/metrics/collect.h"
#include "server/open_store.h"
#include "server/page/host_check.h"
#include "server/rpc/backend.h"
#include "server/rpc/message.h"
#include "server/services/services.h"
#include "server/sessions/analyze_reactor.h"

namespace perceptrond {
namespace {

// After a drained server has had no new call for this long, answers handed to gRPC have reached
// their clients. Clients that receive DRAINING wait before they retry, longer each time; those that
// do not wait are given up on after the maximum.
constexpr absl::Duration kDrainQuietPeriod = absl::Milliseconds(250);
constexpr absl::Duration kMaxDrainQuietWait = absl::Seconds(1);
// Within this time cancelled work has ended and its answers are written.
constexpr absl::Duration kCancelTime = absl::Seconds(1);
// The work of a request of the page ends by then, for which a browser waits.
constexpr std::chrono::seconds kPageTime(10);

// Threads that poll the completion queue. One keeps up with a few processors and never passes the
// polling role on. From eight processors on a third.
int PollingThreads() {
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return processors < 8 ? 1 : std::min((processors + 1) / 3, 16);
}

// Threads for work that takes long. Some of them wait for the disk.
int WorkerThreads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

// Memory of the process without its open streams, above which the transport closes the connections
// that hold the most without finishing it: what docs/operate.md says that it needs, less a quarter of the budget for what
// arrives until that is noticed, and of a large budget less.
uint64_t MostResidentBytes(uint64_t memory_budget) {
  return memory_budget + std::min<uint64_t>(memory_budget / 4 + 100'000'000, uint64_t{512} << 20);
}

Connections::Limits AskedLimits(const Options& options) {
  return {options.max_connections, options.max_connections_per_address,
          options.max_streams_per_connection, options.max_streams};
}

// The process is of no use, and may not be able to end in order.
void ExitForSupervisor(const std::string& address, const std::string& error) {
  Log(LogLevel::kError, "this server no longer answers at its own address; exiting",
      {{"address", address}, {"error", error}});
  std::_Exit(1);
}

}  // namespace

absl::Status Server::Parts::OpenAccess() {
  if (!options.tls_cert.empty()) {
    absl::StatusOr<std::unique_ptr<TlsCertificates>> loaded =
        TlsCertificates::Load({options.tls_cert, options.tls_key, options.tls_client_ca});
    if (!loaded.ok()) return loaded.status();
    tls = *std::move(loaded);
  }
  if (!options.access_file.empty()) {
    absl::StatusOr<std::unique_ptr<AccessControl>> loaded =
        AccessControl::Load(options.access_file);
    if (!loaded.ok()) return loaded.status();
    access = *std::move(loaded);
    WarnOfNoPrincipals();
  }
  absl::StatusOr<std::unique_ptr<AuditLog>> opened = AuditLog::Open(options.audit_log);
  if (!opened.ok()) return opened.status();
  audit = *std::move(opened);
  admission = std::make_unique<Admission>(
      access.get(), audit.get(),
      Admission::Limits{options.max_examples_per_second, options.max_message_bytes});
  acceptor.SetAdmission(admission.get());
  return absl::OkStatus();
}

absl::Status Server::Parts::AddServices() {
  const Backend backend{
      *store,
      drain,
      *workers,
      *memory,
      options.max_message_bytes,
      {options.max_in_flight_messages, options.max_in_flight_bytes, options.max_message_bytes},
      std::min(Backend::kTransferTime, options.receive_timeout)};
  AddModelService(router, backend);
  AddAliasService(router, backend);
  AddHistoryService(router, backend);
  AddLearningService(router, backend);
  AddPredictionService(router, backend);
  AddAnalysisService(router, backend, *analyses);
  AddBackupService(router, backend);
  AddInferenceService(router, backend);
  AddReflectionService(router);
  for (const google::protobuf::ServiceDescriptor* service : router.services()) {
    rpc.AddService(*service);
    admission->AddService(*service);
  }
  admission->UseAliases(store->catalogue().aliases());
  if (store->fleet() == nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<FleetServer>> made =
      FleetServer::Make(backend, router,
                        {options.fleet_address, options.fleet_cert, options.fleet_key,
                         options.fleet_ca, access.get()});
  if (!made.ok()) return made.status();
  fleet = *std::move(made);
  return fleet->Listen();
}

TransportOptions Server::Parts::MakeTransportOptions() {
  TransportOptions transport;
  transport.addresses = options.addresses;
  transport.encrypted = !options.tls_cert.empty();
  transport.max_receive_bytes =
      static_cast<uint64_t>(TransportMessageBytes(options.max_message_bytes));
  transport.receive_timeout = options.receive_timeout;
  transport.connection_idle = options.max_connection_idle;
  transport.connection_age = options.max_connection_age;
  transport.probe_interval = options.self_probe_interval;
  // Memory that the budget does not see, and that keeps a fast sender busy.
  transport.window_bytes = std::clamp<uint64_t>(options.memory_budget / 2048, 64 << 10, 1 << 20);
  transport.max_resident_bytes = MostResidentBytes(options.memory_budget);
  transport.on_probe_failure = ExitForSupervisor;
  transport.on_second = [this] {
    acceptor.EndLateRequests(options.receive_timeout);
    if (store->fleet() == nullptr) return;
    health.SetLearning(store->fleet()->can_commit());
    health.SetPredicting(store->fleet()->should_predict());
  };
  return transport;
}

HttpHandler Server::Parts::WithHttpAccess(HttpHandler handler) {
  if (access != nullptr) handler = WithAccess(*access, *admission, std::move(handler));
  const bool any_host = options.metrics_hosts.empty() && !IsLoopback(options.metrics_address);
  return any_host ? handler : WithHostCheck(options.metrics_hosts, std::move(handler));
}

absl::Status Server::Parts::Listen() {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (tls != nullptr) credentials = tls->credentials();
  absl::StatusOr<std::unique_ptr<Transport>> listening =
      Transport::Listen(MakeTransportOptions(), connections);
  if (!listening.ok()) return listening.status();
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  (*listening)->AddTo(builder, credentials);
  acceptor.AddTo(builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcMetricsInterceptor(rpc));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  grpc = builder.BuildAndStart();
  if (grpc == nullptr) return absl::InternalError("gRPC cannot start the server; see the log");
  for (const std::string& address : options.addresses) {
    // Who may connect is for the umask that the server was started with.
    if (absl::StartsWith(address, "unix:"))
      chmod(address.substr(strlen("unix:")).c_str(), 0777 & ~umask_before);
    if (!IsLoopback(address) && options.insecure) {
      Log(LogLevel::kWarning,
          "--insecure: all callers of this address may do everything that its access file does not "
          "forbid; nothing is encrypted without --tls-cert",
          {{"address", address}});
    }
  }
  // The client needs a processor, too. Of several polling threads gRPC lets only one look.
  const bool spins = std::thread::hardware_concurrency() > 1 && PollingThreads() == 1;
  acceptor.Start(
      PollingThreads(),
      {absl::ToChronoNanoseconds(spins ? options.busy_poll : absl::ZeroDuration()), [this] {
         return workers->idle() == workers->size() &&
                store->committer().oldest_wait() == absl::ZeroDuration();
       }});
  transport = *std::move(listening);
  transport->Start();
  Log(LogLevel::kInfo, "accepting connections",
      {{"max_connections", connections.limits().connections},
       {"max_connections_per_address", connections.limits().connections_per_address}});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options) {
  const absl::StatusOr<Connections::Limits> limits =
      ConnectionLimits(AskedLimits(options), RaiseDescriptorLimit());
  if (!limits.ok()) return limits.status();
  auto parts = std::make_unique<Parts>(options, *limits);
  // Models are their owner's: RocksDB's files get mode 0600 and directories 0700.
  parts->umask_before = umask(0077);
  if (absl::Status status = parts->OpenAccess(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Store>> store =
      OpenStore(options, [&parts = *parts](const std::string& model) { parts.OnExpired(model); });
  if (!store.ok()) return store.status();
  parts->store = *std::move(store);
  parts->memory = std::make_unique<InFlightMemory>(parts->store->memory(), options.write_timeout);
  parts->analyses = std::make_unique<AnalysisQueue>(
      AnalysisQueue::Options{options.max_queued_analyses, options.max_analysis_time});
  parts->workers = std::make_unique<Workers>(
      WorkerThreads(), Workers::Limits{options.max_queued_calls, options.max_queue_wait});
  if (absl::Status status = parts->AddServices(); !status.ok()) return status;
  if (!options.metrics_address.empty()) {
    Store& store = *parts->store;
    HttpHandler page;
    if (options.status_page) {
      parts->page =
          std::make_unique<StatusPage>(store, [&drain = parts->drain] { return drain.draining(); });
      page = [&page = *parts->page,
              &stopping = parts->acceptor.cancellation()](const HttpRequest& request) {
        const CancellationToken token(&stopping, CancellationToken::Clock::now() + kPageTime);
        const CancellationScope scope(&token);
        return page.Answer(request);
      };
    }
    Metrics::Sources sources;
    sources.models = [&store](size_t limit) { return CollectModels(store, limit); };
    sources.server = [&store, &parts = *parts] {
      ServerStats stats = CollectServer(store, *parts.memory, parts.connections, parts.options);
      if (parts.fleet != nullptr)
        std::tie(stats.fleet->evaluated_rows, stats.fleet->forwarded_rows) = parts.fleet->rows();
      return stats;
    };
    sources.principals = [&parts = *parts] { return parts.admission->principal_metrics(); };
    sources.dropped_audit_records = [&audit = *parts->audit] { return audit.dropped(); };
    sources.rpc = &parts->rpc;
    sources.page = std::move(page);
    sources.access = [&parts = *parts](HttpHandler handler) {
      return parts.WithHttpAccess(std::move(handler));
    };
    const TlsFiles tls = options.metrics_tls ? parts->tls->current().first : TlsFiles();
    absl::StatusOr<std::unique_ptr<Metrics>> metrics =
        Metrics::Start(options.metrics_address, options.metrics_max_models, std::move(sources),
                       options.metrics_tls ? &tls : nullptr);
    if (!metrics.ok()) return metrics.status();
    parts->metrics = *std::move(metrics);
  }
  Parts& started = *parts;
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  server->SetSlowCall(options.slow_call);
  if (absl::Status status = started.Listen(); !status.ok()) return status;
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Shutdown(); }

const std::vector<std::string>& Server::addresses() const { return parts_->transport->addresses(); }

int Server::metrics_port() const {
  return parts_->metrics == nullptr ? 0 : parts_->metrics->port();
}

void Server::SetSlowCall(absl::Duration threshold) {
  parts_->acceptor.slow_calls().SetThreshold(threshold);
  if (parts_->fleet != nullptr) parts_->fleet->slow_calls().SetThreshold(threshold);
}

void Server::Shutdown() {
  if (std::exchange(parts_->stopped, true)) return;
  if (parts_->grpc != nullptr) {
    parts_->health.Stop();
    parts_->drain.Begin();
    if (!parts_->drain.AwaitAllRemoved(parts_->options.drain_timeout)) {
      Log(LogLevel::kWarning, "calls exceed the drain timeout and are cancelled");
      parts_->acceptor.CancelCalls();
      (void)parts_->drain.AwaitAllRemoved(kCancelTime);
    }
    // No stream learns here any more. Other servers take over while late calls are answered.
    if (parts_->store->fleet() != nullptr) parts_->store->fleet()->Leave();
    parts_->drain.AwaitQuiet(kDrainQuietPeriod, kMaxDrainQuietWait);
    parts_->transport->Stop();
    // Without a grace period: a closed connection tells clients more than a cancelled call.
    parts_->acceptor.CancelCalls();
    parts_->acceptor.Stop(*parts_->grpc);
  }
  // Also of a server that could not be started.
  if (parts_->fleet != nullptr) parts_->fleet->Stop();
  parts_->metrics.reset();
  parts_->page.reset();
  parts_->grpc.reset();
  parts_->workers.reset();
  parts_->analyses.reset();
  parts_->memory.reset();
  // No call holds a model any more. The store writes pending updates before it is destroyed.
  parts_->store.reset();
}

}  // namespace perceptrond
