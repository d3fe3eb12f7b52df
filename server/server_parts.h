// What a server consists of. For server.cc and server_reload.cc.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <memory>

#include "absl/status/status.h"
#include "core/store/store.h"
#include "server/access/access_control.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/http_access.h"
#include "server/config/options.h"
#include "server/fleet/fleet_server.h"
#include "server/metrics/metrics.h"
#include "server/metrics/rpc_metrics.h"
#include "server/page/status_page.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/connections.h"
#include "server/rpc/drain.h"
#include "server/rpc/health.h"
#include "server/rpc/tls_certificates.h"
#include "server/rpc/transport.h"
#include "server/rpc/workers.h"
#include "server/server.h"
#include "server/sessions/analysis_queue.h"

namespace perceptrond {

// Members are in the order of their construction; Shutdown destroys them in reverse.
struct Server::Parts {
  Parts(const Options& options, const Connections::Limits& limits)
      : options(options), connections(limits) {}

  const Options options;
  RpcMetrics rpc;
  Drain drain;
  Router router;
  Health health{router};
  // Outlives the store, whose thread records models that expire.
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<Store> store;
  std::unique_ptr<InFlightMemory> memory;
  std::unique_ptr<AnalysisQueue> analyses;
  std::unique_ptr<Workers> workers;
  Connections connections;
  // Null without an access file.
  std::unique_ptr<AccessControl> access;
  std::unique_ptr<Admission> admission;
  // Null without a fleet.
  std::unique_ptr<FleetServer> fleet;
  Acceptor acceptor{[this](const std::string& path) -> const Call::Method& {
                      return fleet == nullptr ? router.Find(path) : fleet->Find(path);
                    },
                    &connections};
  // Null without TLS.
  std::unique_ptr<TlsCertificates> tls;
  std::unique_ptr<grpc::Server> grpc;
  // Null until Listen. Destroyed before the server that it hands connections to.
  std::unique_ptr<Transport> transport;
  // Null if the page is off.
  std::unique_ptr<StatusPage> page;
  std::unique_ptr<Metrics> metrics;
  // Of the process before this server.
  mode_t umask_before = 0;
  bool stopped = false;

  absl::Status OpenAccess();
  absl::Status AddServices();
  TransportOptions MakeTransportOptions();
  HttpHandler WithHttpAccess(HttpHandler handler);
  absl::Status Listen();
  void ReloadCertificates();
  void ReloadAccess();
  void WarnOfNoPrincipals() const;
  // A model was deleted because it was not used.
  void OnExpired(const std::string& model) const;
};

}  // namespace perceptrond
