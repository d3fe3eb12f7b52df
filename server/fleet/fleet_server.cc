#include "server/fleet/fleet_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fleet/fleet.h"
#include "core/store/store.h"
#include "core/sync/thread_name.h"
#include "server/config/tls_files.h"
#include "server/fleet/relay.h"
#include "server/fleet/segment_call.h"
#include "server/fleet/segment_session.h"
#include "server/rpc/message.h"
#include "server/sessions/stream_reactor.h"

namespace perceptrond {
namespace {

// The name in the certificates of a fleet's servers, whatever their addresses.
constexpr char kName[] = "perceptrond";

struct Entry {
  const char* method;
  Without without_writer;
};

// Methods that need the newest state of a model or change it. All others run where they arrive.
constexpr Entry kEntries[] = {
    {"perceptron.v1.LearningService.Learn", Without::kFail},
    {"perceptron.v1.LearningService.LearnStream", Without::kFail},
    {"perceptron.v1.ModelService.UpdateModel", Without::kFail},
    {"perceptron.v1.ModelService.FreezeModel", Without::kFail},
    {"perceptron.v1.ModelService.UnfreezeModel", Without::kFail},
    {"perceptron.v1.ModelService.DeleteModel", Without::kFail},
    {"perceptron.v1.ModelService.GetModel", Without::kHere},
    {"perceptron.v1.ModelService.WatchModel", Without::kHere},
    {"perceptron.v1.AnalysisService.Analyze", Without::kFail},
    {"perceptron.v1.AnalysisService.ListStoredExamples", Without::kHere},
};

constexpr char kLearnStream[] = "/perceptron.v1.LearningService/LearnStream";

// What a segment may have besides its request: mostly names that other messages appended.
constexpr size_t kMostSegmentBytes = 4 << 20;

Backend WithSegments(const Backend& backend) {
  Backend with = backend;
  with.max_message_bytes += kMostSegmentBytes;
  return with;
}

// How soon after a take-over calls to the writer before it end.
constexpr absl::Duration kStaleInterval = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<FleetServer>> FleetServer::Make(const Backend& backend,
                                                               const Router& router,
                                                               const FleetServerOptions& options) {
  std::shared_ptr<grpc::ServerCredentials> server = grpc::InsecureServerCredentials();
  std::shared_ptr<grpc::ChannelCredentials> client = grpc::InsecureChannelCredentials();
  if (!options.certificate.empty()) {
    const absl::StatusOr<TlsFiles> files =
        ReadTlsFiles(options.certificate, options.key, options.authority);
    if (!files.ok()) return files.status();
    grpc::SslServerCredentialsOptions both(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    both.pem_root_certs = files->client_ca;
    both.pem_key_cert_pairs.push_back({files->key, files->certificates});
    server = grpc::SslServerCredentials(both);
    client = grpc::SslCredentials({files->client_ca, files->key, files->certificates});
  }
  return std::unique_ptr<FleetServer>(
      new FleetServer(backend, router, options, std::move(server), std::move(client)));
}

FleetServer::FleetServer(const Backend& backend, const Router& router, FleetServerOptions options,
                         std::shared_ptr<grpc::ServerCredentials> server,
                         std::shared_ptr<grpc::ChannelCredentials> client)
    : backend_(backend),
      router_(router),
      options_(std::move(options)),
      credentials_(std::move(server)),
      calls_(std::move(client), options_.certificate.empty() ? "" : kName,
             options_.max_message_bytes + kMostSegmentBytes),
      routing_(backend.store, backend.workers,
               [this](Call& call, const Destination& to, const RoutedMethod& method) {
                 RunThere(call, to, method);
               }),
      segments_(OnStream<SegmentSession>(WithSegments(backend))),
      acceptor_([this](const std::string& path) -> const Call::Method& {
        return path == kSegmentsPath ? segments_ : router_.Find(path);
      }) {
  for (const google::protobuf::ServiceDescriptor* service : router_.services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service->method(i);
      const Entry* const found =
          std::find_if(std::begin(kEntries), std::end(kEntries),
                       [&](const Entry& entry) { return method.full_name() == entry.method; });
      if (found == std::end(kEntries)) continue;
      MethodAccess names(method);
      const std::string path = names.path();
      routed_.push_back(std::make_unique<RoutedMethod>(
          RoutedMethod{std::move(names), found->without_writer, router_.Find(path)}));
      methods_.emplace(path, routing_.Wrap(*routed_.back()));
    }
  }
}

FleetServer::~FleetServer() { Stop(); }

void FleetServer::RunThere(Call& call, const Destination& to, const RoutedMethod& method) {
  if (call.path() != kLearnStream)
    return RunRelay(calls_, backend_.drain, call, to, method.names.is_stream());
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

absl::Status FleetServer::Listen() {
  grpc::ServerBuilder builder;
  int port = 0;
  // Else two servers could listen at one address, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(options_.address, credentials_, &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
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
