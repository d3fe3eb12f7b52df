// What a server of a fleet does besides serving: it runs calls on the servers that write their
// models, and has a port of its own where others run theirs on it. Who reaches that port has been
// checked by the server that received the call.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sync/mutex.h"
#include "server/fleet/follower_learn_session.h"
#include "server/fleet/prediction_calls.h"
#include "server/fleet/routing.h"
#include "server/fleet/writer_calls.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/backend.h"
#include "server/rpc/tls_certificates.h"

namespace perceptrond {

class AccessControl;

struct FleetServerOptions {
  // Where it listens.
  std::string address;
  // Paths of PEM files for mutual TLS; empty: without.
  std::string certificate;
  std::string key;
  std::string authority;
  // The rules for the principals whose calls other servers pass on; null: they may do everything. Must
  // outlive the calls.
  const AccessControl* access = nullptr;
};

// Thread contract: Find by any thread; the rest by one.
class FleetServer {
 public:
  // `router` has the methods that run here. Both must outlive it, and it the calls.
  // INVALID_ARGUMENT or NOT_FOUND for files that cannot be used.
  static absl::StatusOr<std::unique_ptr<FleetServer>> Make(const Backend& backend,
                                                           const Router& router,
                                                           const FleetServerOptions& options);
  ~FleetServer();

  // The method for a client's call: it may run elsewhere.
  const Call::Method& Find(const std::string& path) const;
  // Serves other servers from now on. UNAVAILABLE.
  absl::Status Listen();
  // Ends all of their calls, and those to them.
  void Stop();
  // Reads the TLS files again, if there are any; `changed`: only if they have. New connections to
  // and from other servers get them. If they cannot be used, those in use stay, and the log says
  // why.
  void ReloadCertificates(bool changed);
  // Of the calls that other servers make here.
  SlowCallLog& slow_calls() { return acceptor_.slow_calls(); }
  // Examples of streams whose models other servers write: evaluated here, and forwarded.
  std::pair<uint64_t, uint64_t> rows() const { return {rows_.evaluated, rows_.forwarded}; }

 private:
  FleetServer(const Backend& backend, const Router& router, FleetServerOptions options,
              std::unique_ptr<TlsCertificates> tls);

  // Runs a client's call on the server that writes the model, or as much of it as needs that.
  void RunThere(Call& call, const Destination& to, const RoutedMethod& method);
  void EndStaleCalls() ABSL_LOCKS_EXCLUDED(mutex_);
  // Another server's call, if it is one.
  void RunHere(Call& call) const;

  const Backend backend_;
  const Router& router_;
  const FleetServerOptions options_;
  const std::unique_ptr<TlsCertificates> tls_;
  WriterCalls calls_;
  FollowedRows rows_;
  Routing routing_;
  // Predictions that other servers keep.
  const std::shared_ptr<PredictionCalls> prediction_calls_;
  // What other servers call besides the methods of clients.
  const Call::Method segments_;
  const Call::Method predictions_;
  std::vector<std::unique_ptr<RoutedMethod>> routed_;
  // By path.
  absl::flat_hash_map<std::string, Call::Method> methods_;
  // What runs every call of another server.
  const Call::Method internal_ = [this](Call& call) { RunHere(call); };
  Acceptor acceptor_;
  std::unique_ptr<grpc::Server> grpc_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends calls that were relayed to servers which are no longer the writers.
  std::thread stale_;
};

}  // namespace perceptrond
