#include "server/server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb_journal.h"
#include "core/store/store.h"
#include "server/config/endpoint.h"
#include "server/config/logging.h"
#include "server/metrics/collect.h"
#include "server/metrics/metrics.h"
#include "server/metrics/rpc_metrics.h"
#include "server/page/status_page.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/backend.h"
#include "server/rpc/health.h"
#include "server/rpc/message.h"
#include "server/rpc/tls_certificates.h"
#include "server/services/services.h"
#include "server/sessions/analyze_reactor.h"

namespace perceptrond {
namespace {

// After a drained server has had no new call for this long, answers handed to gRPC have reached
// their clients. Clients that receive DRAINING wait before they retry, longer each time; those that
// do not wait are given up on after the maximum.
constexpr absl::Duration kDrainQuietPeriod = absl::Milliseconds(250);
constexpr absl::Duration kMaxDrainQuietWait = absl::Seconds(1);
// How long to wait for the previous server to drain and release the data directory.
constexpr absl::Duration kDataDirectoryTimeout = absl::Seconds(5);

// Threads that poll the completion queue. One keeps up with a few processors and never passes the
// polling role on. From eight processors on a third, since receiving is a third of the work
// (docs/performance.md).
int PollingThreads() {
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return processors < 8 ? 1 : std::min((processors + 1) / 3, 16);
}

// Threads for work that takes long. Some of them wait for the disk.
int WorkerThreads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const Options& options) {
  if (options.journal == JournalKind::kMemory) return std::make_unique<MemoryJournal>();
  RocksDbJournal::Options rocksdb;
  rocksdb.directory = options.data_dir;
  rocksdb.lock_timeout = kDataDirectoryTimeout;
  rocksdb.on_locked = [&] {
    Log(LogLevel::kInfo, "another server uses the data directory; waiting for it to stop",
        {{"data_dir", options.data_dir}, {"timeout", absl::FormatDuration(kDataDirectoryTimeout)}});
  };
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(rocksdb);
  if (!journal.ok()) return journal.status();
  return *std::move(journal);
}

Store::Options StoreOptions(const Options& options) {
  Store::Options store;
  store.committer.durability = options.durability;
  store.committer.interval = options.durability_interval;
  store.limits.max_example_features = options.max_example_features;
  store.memory_budget = options.memory_budget;
  store.max_new_model_bytes = options.memory_budget;
  store.snapshot_bytes = options.snapshot_bytes;
  store.on_write_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError,
        "cannot write updates to the journal; the model is rolled back to its last durable state",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_damage = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError, "a model is damaged and cannot be loaded; other models are not affected",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_snapshot_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError, "cannot write a snapshot; the journal grows until one is written",
        {{"model", model}, {"error", why.message()}});
  };
  return store;
}

}  // namespace

// Members are in the order of their construction; Shutdown destroys them in reverse.
struct Server::Parts {
  explicit Parts(const Options& options) : options(options) {}

  const Options options;
  RpcMetrics rpc;
  Drain drain;
  Router router;
  Health health{router};
  std::unique_ptr<Store> store;
  std::unique_ptr<AnalysisQueue> analyses;
  std::unique_ptr<Workers> workers;
  Acceptor acceptor{
      [this](const std::string& path) -> const Call::Method& { return router.Find(path); }};
  // Null without TLS.
  std::unique_ptr<TlsCertificates> tls;
  std::unique_ptr<grpc::Server> grpc;
  std::vector<std::string> addresses;
  // Null if the page is off.
  std::unique_ptr<StatusPage> page;
  std::unique_ptr<Metrics> metrics;
  bool stopped = false;

  void AddServices();
  absl::Status Listen();
};

void Server::Parts::AddServices() {
  const Backend backend{*store,
                        drain,
                        *workers,
                        options.max_message_bytes,
                        {options.max_in_flight_messages, options.max_in_flight_bytes}};
  AddModelService(router, backend);
  AddLearningService(router, backend);
  AddPredictionService(router, backend);
  AddAnalysisService(router, backend, *analyses);
  AddInferenceService(router, backend);
  AddReflectionService(router);
  for (const google::protobuf::ServiceDescriptor* service : router.services())
    rpc.AddService(*service);
}

absl::Status Server::Parts::Listen() {
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!options.tls_cert.empty()) {
    absl::StatusOr<std::unique_ptr<TlsCertificates>> loaded =
        TlsCertificates::Load({options.tls_cert, options.tls_key, options.tls_client_ca});
    if (!loaded.ok()) return loaded.status();
    tls = *std::move(loaded);
    credentials = tls->credentials();
  }
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  std::vector<int> ports(options.addresses.size());
  for (size_t i = 0; i < options.addresses.size(); ++i) {
    absl::string_view path = options.addresses[i];
    // gRPC would take over the path from a running server.
    if (absl::ConsumePrefix(&path, "unix:") && IsListenedOn(std::string(path))) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.addresses[i],
                       ": another process listens there; stop it or choose another path"));
    }
    builder.AddListeningPort(options.addresses[i], credentials, &ports[i]);
  }
  // A second server on the same port must be an error and not share the port.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(TransportMessageBytes(options.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  acceptor.AddTo(builder);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeRpcMetricsInterceptor(rpc));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  grpc = builder.BuildAndStart();
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string& address = options.addresses[i];
    if (grpc == nullptr || ports[i] == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", address,
                       ": the port is in use, or the address is not one of this machine"));
    }
    const bool socket = absl::StartsWith(address, "unix:");
    addresses.push_back(
        socket ? address : absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i]));
    if (!IsLoopback(address) && options.tls_cert.empty()) {
      Log(LogLevel::kWarning,
          "other machines can reach this address without encryption; see --tls-cert",
          {{"address", address}});
    }
  }
  // Spinning needs two processors, since the client needs one. With several polling threads gRPC
  // lets only one look at the sockets: the others would spin for nothing.
  const bool spins = std::thread::hardware_concurrency() > 1 && PollingThreads() == 1;
  acceptor.Start(
      PollingThreads(),
      {absl::ToChronoNanoseconds(spins ? options.busy_poll : absl::ZeroDuration()), [this] {
         return workers->idle() == workers->size() &&
                store->committer().oldest_wait() == absl::ZeroDuration();
       }});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options) {
  auto parts = std::make_unique<Parts>(options);
  absl::StatusOr<std::unique_ptr<Journal>> journal = OpenJournal(options);
  if (!journal.ok()) return journal.status();
  parts->store = std::make_unique<Store>(*std::move(journal), StoreOptions(options));
  parts->analyses = std::make_unique<AnalysisQueue>();
  parts->workers = std::make_unique<Workers>(WorkerThreads());
  parts->AddServices();
  if (!options.metrics_address.empty()) {
    Store& store = *parts->store;
    HttpHandler page;
    if (options.status_page) {
      parts->page = std::make_unique<StatusPage>(
          store, [&drain = parts->drain] { return drain.draining(); },
          IsLoopback(options.metrics_address));
      page = [&page = *parts->page](const HttpRequest& request) { return page.Answer(request); };
    }
    absl::StatusOr<std::unique_ptr<Metrics>> metrics = Metrics::Start(
        options.metrics_address, options.metrics_max_models,
        {[&store](size_t limit) { return CollectModels(store, limit); },
         [&store, &options = parts->options] { return CollectServer(store, options); }, &parts->rpc,
         std::move(page)});
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

const std::vector<std::string>& Server::addresses() const { return parts_->addresses; }

int Server::metrics_port() const {
  return parts_->metrics == nullptr ? 0 : parts_->metrics->port();
}

void Server::SetSlowCall(absl::Duration threshold) {
  parts_->acceptor.slow_calls().SetThreshold(threshold);
}

void Server::ReloadCertificates() {
  TlsCertificates* const tls = parts_->tls.get();
  if (tls == nullptr) return;
  const absl::StatusOr<bool> changed = tls->Reload();
  if (!changed.ok()) {
    Log(LogLevel::kError, "cannot use the TLS files; the certificates in use stay",
        {{"error", changed.status().message()}});
  } else if (*changed) {
    Log(LogLevel::kInfo, "new connections get the new TLS certificates",
        {{"tls_cert", parts_->options.tls_cert}});
  }
}

void Server::ReloadChangedCertificates() {
  if (parts_->tls != nullptr && parts_->tls->FilesChanged()) ReloadCertificates();
}

void Server::Shutdown() {
  if (std::exchange(parts_->stopped, true)) return;
  if (parts_->grpc != nullptr) {
    parts_->health.Stop();
    parts_->drain.Begin();
    if (!parts_->drain.AwaitAllRemoved(parts_->options.drain_timeout)) {
      Log(LogLevel::kWarning, "calls exceed the drain timeout and are cancelled");
    }
    parts_->drain.AwaitQuiet(kDrainQuietPeriod, kMaxDrainQuietWait);
    // Without a grace period, in which gRPC would cancel new calls of clients that have not noticed
    // yet. A closed connection tells them more.
    parts_->acceptor.Stop(*parts_->grpc);
  }
  parts_->metrics.reset();
  parts_->page.reset();
  parts_->grpc.reset();
  parts_->workers.reset();
  parts_->analyses.reset();
  // No call holds a model any more. The store writes pending updates before it is destroyed.
  parts_->store.reset();
}

}  // namespace perceptrond
