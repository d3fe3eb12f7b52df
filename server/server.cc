#include "server/server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb_journal.h"
#include "core/model/store.h"
#include "server/config/logging.h"
#include "server/config/tls_files.h"
#include "server/metrics/metrics.h"
#include "server/metrics/rpc_metrics.h"
#include "server/page/status_page.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/backend.h"
#include "server/rpc/drain.h"
#include "server/rpc/health.h"
#include "server/rpc/message.h"
#include "server/rpc/model_name.h"
#include "server/rpc/reflection.h"
#include "server/rpc/router.h"
#include "server/rpc/unix_socket.h"
#include "server/rpc/workers.h"
#include "server/services/analysis_service.h"
#include "server/services/inference_service.h"
#include "server/services/learning_service.h"
#include "server/services/model_service.h"
#include "server/sessions/analysis_queue.h"

namespace perceptrond {
namespace {

// Without new calls for so long: answers that were handed to gRPC have reached their clients, and
// those who are told that the server stops wait before they ask again, longer each time. Who does
// not wait is not waited for for ever.
constexpr absl::Duration kLastWords = absl::Milliseconds(250);
constexpr absl::Duration kLongestFarewell = absl::Seconds(1);
// For the server before this one to finish draining and let go of the data directory.
constexpr absl::Duration kPredecessorTimeout = absl::Seconds(5);

// Threads that ask for events. One keeps up with two processors, and loses none of them to being
// relieved by another; more are for machines that have processors to spare.
int PollingThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 16);
}

// Threads for what takes long. Some of them wait for the disk.
int WorkingThreads() { return std::max(4, static_cast<int>(std::thread::hardware_concurrency())); }

absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(const Options& options) {
  if (options.journal == JournalKind::kMemory) return std::make_unique<MemoryJournal>();
  RocksDbJournal::Options rocksdb;
  rocksdb.directory = options.data_dir;
  rocksdb.lock_timeout = kPredecessorTimeout;
  rocksdb.on_locked = [&] {
    Log(LogLevel::kInfo, "another server still holds the data directory: waiting for it to let go",
        {{"data_dir", options.data_dir}, {"at_most", absl::FormatDuration(kPredecessorTimeout)}});
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
  store.snapshot_bytes = options.snapshot_bytes;
  store.on_write_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError,
        "updates could not be written; the model goes back to its last durable state",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_damage = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError, "a model is damaged and cannot be loaded; the others go on",
        {{"model", model}, {"error", why.message()}});
  };
  store.on_snapshot_failure = [](const std::string& model, const absl::Status& why) {
    Log(LogLevel::kError,
        "a snapshot could not be written; the journal keeps growing until one can",
        {{"model", model}, {"error", why.message()}});
  };
  return store;
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const Options& options) {
  if (options.tls_cert.empty()) return grpc::InsecureServerCredentials();
  absl::StatusOr<TlsFiles> files =
      ReadTlsFiles(options.tls_cert, options.tls_key, options.tls_client_ca);
  if (!files.ok()) return files.status();
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({std::move(files->key), std::move(files->certificates)});
  if (!files->client_ca.empty()) {
    ssl.pem_root_certs = std::move(files->client_ca);
    ssl.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(ssl);
}

std::vector<ModelMetrics> CollectModels(Store& store, size_t limit) {
  std::vector<ModelMetrics> metrics;
  absl::StatusOr<std::vector<ModelSummary>> models = store.List("", limit);
  if (!models.ok()) {
    Log(LogLevel::kWarning, "models cannot be listed for metrics",
        {{"error", models.status().ToString()}});
    return metrics;
  }
  for (ModelSummary& model : *models) {
    ModelMetrics& one = metrics.emplace_back();
    one.id = std::string(absl::StripPrefix(model.settings.name(), kModelCollection));
    one.revision = model.revision;
    one.report = std::move(model.report);
    if (model.journal.has_value()) {
      one.journal_bytes = model.journal->bytes;
      one.snapshot_time = model.journal->snapshot_time;
    }
    one.memory_bytes = model.memory_bytes;
    one.retained = model.retained;
    one.in_memory = model.in_memory;
  }
  return metrics;
}

// What the disk of the journal has; RocksDbJournal refuses to write below the reserve.
void CollectDisk(const Options& options, ServerStats& server) {
  if (options.journal != JournalKind::kRocksDb) return;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options.data_dir, error);
  if (error) return;
  server.disk_free_bytes = space.available;
  server.disk_size_bytes = space.capacity;
  server.disk_reserve_bytes = RocksDbJournal::Options().reserve_bytes;
}

ServerStats CollectServer(Store& store, const Options& options) {
  const Store::Stats stats = store.stats();
  ServerStats server;
  server.models = store.Count().value_or(0);
  server.models_loaded = stats.models_in_memory;
  server.memory_bytes = stats.memory_bytes;
  server.memory_budget_bytes = store.memory_budget();
  server.journal_commits = stats.commits;
  server.journal_commit_failures = stats.commit_failures;
  server.journal_commit_seconds = absl::ToDoubleSeconds(stats.commit_busy);
  server.journal_wait_seconds = absl::ToDoubleSeconds(stats.oldest_commit_wait);
  server.loads = stats.loads;
  server.evictions = stats.evictions;
  server.snapshots = stats.snapshots;
  server.snapshot_failures = stats.snapshot_failures;
  server.snapshot_threshold_bytes = options.snapshot_bytes;
  CollectDisk(options, server);
  return server;
}

}  // namespace

// In the order of their making; unmade from the end.
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
  std::unique_ptr<grpc::Server> grpc;
  std::vector<std::string> addresses;
  // Null: there is none.
  std::unique_ptr<StatusPage> page;
  std::unique_ptr<Metrics> metrics;
  bool stopped = false;

  void AddServices();
  absl::Status Listen();
};

void Server::Parts::AddServices() {
  const Backend backend{*store, drain, *workers, options.max_message_bytes};
  AddModelService(router, backend);
  AddLearningService(router, backend,
                     StreamLimits{options.max_in_flight_messages, options.max_in_flight_bytes,
                                  options.max_message_bytes});
  AddAnalysisService(router, backend, *analyses);
  AddInferenceService(router, backend);
  AddReflectionService(router);
  for (const google::protobuf::ServiceDescriptor* service : router.services())
    rpc.AddService(*service);
}

absl::Status Server::Parts::Listen() {
  absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  std::vector<int> ports(options.addresses.size());
  for (size_t i = 0; i < options.addresses.size(); ++i) {
    absl::string_view path = options.addresses[i];
    // gRPC would take the name from the other server.
    if (absl::ConsumePrefix(&path, "unix:") && IsListenedOn(std::string(path))) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.addresses[i], ": another server does"));
    }
    builder.AddListeningPort(options.addresses[i], *credentials, &ports[i]);
  }
  // Another server on the same port must be an error, not a partner.
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
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", address, ": is it in use, or not an address of this machine?"));
    }
    const bool socket = absl::StartsWith(address, "unix:");
    addresses.push_back(
        socket ? address : absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[i]));
    if (!IsLoopback(address) && options.tls_cert.empty()) {
      Log(LogLevel::kWarning,
          "others can reach this address, and nothing is encrypted: see --tls-cert",
          {{"address", address}});
    }
  }
  // Not on one processor, whose time the client needs; and of several threads at one queue gRPC
  // lets one look at the sockets, so that the others would look in vain.
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
  parts->workers = std::make_unique<Workers>(WorkingThreads());
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
  if (absl::Status status = started.Listen(); !status.ok()) return status;
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Shutdown(); }

const std::vector<std::string>& Server::addresses() const { return parts_->addresses; }

int Server::metrics_port() const {
  return parts_->metrics == nullptr ? 0 : parts_->metrics->port();
}

void Server::Shutdown() {
  if (std::exchange(parts_->stopped, true)) return;
  if (parts_->grpc != nullptr) {
    parts_->health.Stop();
    parts_->drain.Begin();
    if (!parts_->drain.AwaitAllRemoved(parts_->options.drain_timeout)) {
      Log(LogLevel::kWarning, "calls outlast the drain timeout and are cancelled");
    }
    parts_->drain.AwaitQuiet(kLastWords, kLongestFarewell);
    // With a grace gRPC would cancel what clients send that have not noticed yet, which tells them
    // nothing; a connection that is gone does.
    parts_->acceptor.Stop(*parts_->grpc);
  }
  parts_->metrics.reset();
  parts_->page.reset();
  parts_->grpc.reset();
  parts_->workers.reset();
  parts_->analyses.reset();
  // Nobody holds a model any more; what was submitted is written before the store goes.
  parts_->store.reset();
}

}  // namespace perceptrond
