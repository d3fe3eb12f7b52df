#include "server/fleet/fleet_server.h"

#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/fleet/fleet.h"
#include "core/store/store.h"
#include "core/sync/thread_name.h"
#include "server/config/logging.h"
#include "server/fleet/relay.h"
#include "server/fleet/segment_call.h"
#include "server/fleet/segment_session.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/message.h"
#include "server/sessions/stream_reactor.h"

namespace perceptrond {
namespace {

// The name in the certificates of a fleet's servers, whatever their addresses.
constexpr char kName[] = "perceptrond";

struct RelayedMethod {
  const char* method;
  Without without_writer;
  RunsAt runs_at = RunsAt::kWriter;
};

// Methods that need the newest state of a model or change it. All others run where they arrive.
constexpr RelayedMethod kRelayedMethods[] = {
    {"perceptron.v1.LearningService.Learn", Without::kFail},
    {"perceptron.v1.LearningService.LearnStream", Without::kFail},
    {"perceptron.v1.ModelService.UpdateModel", Without::kFail},
    {"perceptron.v1.ModelService.FreezeModel", Without::kFail},
    {"perceptron.v1.ModelService.UnfreezeModel", Without::kFail},
    {"perceptron.v1.ModelService.DeleteModel", Without::kFail},
    {"perceptron.v1.ModelService.GetModel", Without::kHere},
    {"perceptron.v1.ModelService.WatchModel", Without::kHere},
    {"perceptron.v1.HistoryService.CopyModel", Without::kFail, RunsAt::kSourceWriter},
    {"perceptron.v1.HistoryService.ImportModel", Without::kFail, RunsAt::kAnyWriter},
    {"perceptron.v1.HistoryService.ExportModel", Without::kHere},
    {"perceptron.v1.HistoryService.RenameModel", Without::kFail},
    {"perceptron.v1.HistoryService.CreateSnapshot", Without::kFail},
    {"perceptron.v1.HistoryService.DeleteSnapshot", Without::kFail},
    {"perceptron.v1.HistoryService.RollBackModel", Without::kFail},
    {"perceptron.v1.AnalysisService.Analyze", Without::kFail},
    {"perceptron.v1.AnalysisService.ListStoredExamples", Without::kHere},
};

constexpr char kLearnStream[] = "/perceptron.v1.LearningService/LearnStream";
constexpr char kExportModel[] = "/perceptron.v1.HistoryService/ExportModel";
constexpr char kImportModel[] = "/perceptron.v1.HistoryService/ImportModel";

RelayKind KindOf(const RoutedMethod& method) {
  if (method.names.path() == kImportModel) return RelayKind::kUpload;
  if (method.names.path() == kExportModel) return RelayKind::kCall;
  return method.names.is_stream() ? RelayKind::kStream : RelayKind::kCall;
}

// What a segment may have besides its request: mostly names that other messages appended.
constexpr size_t kMostSegmentBytes = 4 << 20;

Backend WithSegments(const Backend& backend) {
  Backend with = backend;
  with.max_message_bytes += kMostSegmentBytes;
  return with;
}

std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const TlsCertificates* tls) {
  if (tls == nullptr) return grpc::InsecureChannelCredentials();
  const TlsFiles files = tls->current().first;
  return grpc::SslCredentials({files.client_ca, files.key, files.certificates});
}

// gRPC has checked that the caller's certificate is of the fleet's authority.
bool IsOfTheFleet(const Call& call) {
  const std::shared_ptr<const grpc::AuthContext> auth = call.context().auth_context();
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME);
  return std::find(names.begin(), names.end(), kName) != names.end();
}

absl::Status NotOfTheFleet() {
  return MakeError(absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED",
                   absl::StrCat("this port is for servers of the fleet, whose certificates are for "
                                "the DNS name ",
                                kName, " (--fleet-cert)"));
}

// How soon after a take-over calls to the writer before it end.
constexpr absl::Duration kStaleInterval = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<FleetServer>> FleetServer::Make(const Backend& backend,
                                                               const Router& router,
                                                               const FleetServerOptions& options) {
  std::unique_ptr<TlsCertificates> tls;
  if (!options.certificate.empty()) {
    absl::StatusOr<std::unique_ptr<TlsCertificates>> loaded =
        TlsCertificates::Load({options.certificate, options.key, options.authority});
    if (!loaded.ok()) return loaded.status();
    tls = *std::move(loaded);
  }
  return std::unique_ptr<FleetServer>(new FleetServer(backend, router, options, std::move(tls)));
}

FleetServer::FleetServer(const Backend& backend, const Router& router, FleetServerOptions options,
                         std::unique_ptr<TlsCertificates> tls)
    : backend_(backend),
      router_(router),
      options_(std::move(options)),
      tls_(std::move(tls)),
      calls_(ClientCredentials(tls_.get()), tls_ == nullptr ? "" : kName,
             WithSegments(backend).max_message_bytes, backend.memory.budget().limit()),
      routing_(backend, [this](Call& call, const Destination& to,
                               const RoutedMethod& method) { RunThere(call, to, method); }),
      prediction_calls_(std::make_shared<PredictionCalls>(backend.store, calls_)),
      segments_(OnStream<SegmentSession>(WithSegments(backend))),
      predictions_(AnswerPredictionCalls(WithSegments(backend))),
      acceptor_([this](const std::string& /*path*/) -> const Call::Method& { return internal_; }) {
  acceptor_.SetAccess(options_.access);
  backend.store.predictions().FindElsewhere(
      [calls = prediction_calls_](
          uint32_t server, uint64_t model_id, const WaitingPredictions::Exchange& exchange,
          std::function<void(std::vector<WaitingPredictions::Found>)> done) {
        calls->Call(server, model_id, exchange, std::move(done));
      });
  for (const google::protobuf::ServiceDescriptor* service : router_.services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service->method(i);
      const RelayedMethod* const found = std::find_if(
          std::begin(kRelayedMethods), std::end(kRelayedMethods),
          [&](const RelayedMethod& entry) { return method.full_name() == entry.method; });
      if (found == std::end(kRelayedMethods)) continue;
      MethodAccess names(method);
      const std::string path = names.path();
      routed_.push_back(std::make_unique<RoutedMethod>(RoutedMethod{
          std::move(names), found->without_writer, router_.Find(path), found->runs_at}));
      methods_.emplace(path, routing_.Wrap(*routed_.back()));
    }
  }
}

FleetServer::~FleetServer() { Stop(); }

void FleetServer::RunThere(Call& call, const Destination& to, const RoutedMethod& method) {
  if (call.path() != kLearnStream)
    return RunRelay(calls_, backend_, call, to, KindOf(method), rows_);
  const auto connect = [this, to,
                        origin = CallOrigin(call)](std::weak_ptr<SegmentCall::Receiver> receiver) {
    return SegmentCall::Start(calls_, to.address, to.model_id, to.epoch, origin,
                              std::move(receiver));
  };
  const auto writer_address = [this, id = to.model_id] {
    return backend_.store.fleet()->WriterOf(id).client_address;
  };
  StreamReactor<FollowerLearnSession>::Start(
      call, backend_,
      std::make_shared<FollowerLearnSession>(backend_.store, backend_.stream_limits, connect,
                                             writer_address, rows_));
}

const Call::Method& FleetServer::Find(const std::string& path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? router_.Find(path) : found->second;
}

void FleetServer::RunHere(Call& call) const {
  if (tls_ != nullptr && !IsOfTheFleet(call)) {
    call.Bind(std::make_shared<Reactor>());
    return call.Finish(ToGrpc(NotOfTheFleet()));
  }
  if (call.path() == kSegmentsPath) return segments_(call);
  (call.path() == kPredictionsPath ? predictions_ : router_.Find(call.path()))(call);
}

void FleetServer::ReloadCertificates(bool changed) {
  if (tls_ == nullptr || (changed && !tls_->FilesChanged())) return;
  const absl::StatusOr<bool> replaced = tls_->Reload();
  if (!replaced.ok()) {
    Log(LogLevel::kError, "cannot use the fleet's TLS files; the certificates in use stay",
        {{"error", replaced.status().message()}});
  } else if (*replaced) {
    calls_.UseCredentials(ClientCredentials(tls_.get()));
    Log(LogLevel::kInfo, "new connections to and from other servers get the new TLS certificates",
        {{"fleet_cert", options_.certificate}});
  }
}

absl::Status FleetServer::Listen() {
  grpc::ServerBuilder builder;
  int port = 0;
  // Else two servers could listen at one address, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(
      options_.address, tls_ == nullptr ? grpc::InsecureServerCredentials() : tls_->credentials(),
      &port);
  builder.SetMaxReceiveMessageSize(TransportMessageBytes(WithSegments(backend_).max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // Other servers ask often whether this one is there.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  acceptor_.AddTo(builder);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on --fleet-address ",
                                               options_.address,
                                               ": it is in use, or not of this machine"));
  }
  acceptor_.Start(1);
  stale_ = std::thread([this] { EndStaleCalls(); });
  return absl::OkStatus();
}

void FleetServer::EndStaleCalls() {
  NameThisThread("stale calls");
  while (true) {
    calls_.EndStale([this](uint64_t id) { return backend_.store.fleet()->WriterOf(id).epoch; });
    MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kStaleInterval)) return;
  }
}

void FleetServer::Stop() {
  prediction_calls_->Stop();
  if (grpc_ == nullptr) return;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stale_.join();
  calls_.EndAll(DrainingError());
  acceptor_.CancelCalls();
  acceptor_.Stop(*grpc_);
  grpc_.reset();
}

}  // namespace perceptrond
