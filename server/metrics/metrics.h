// The HTTP endpoint of /metrics and the status page. metrics.cc is the only file that uses
// prometheus-cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/principal_usage.h"
#include "server/config/tls_files.h"
#include "server/metrics/rpc_metrics.h"
#include "server/metrics/stats.h"
#include "server/page/http.h"

namespace perceptrond {

// Serves perceptrond_*, grpc_server_* and process_* in Prometheus's text format. Everything is read
// at scrape time and nothing is kept between scrapes: learning pays nothing, and the series of a
// deleted model are gone at the next scrape.
//
// Thread contract: the endpoint's threads call the sources, several at a time, until the destructor
// returns.
class Metrics {
 public:
  struct Sources {
    // Returns at most `limit` models; the same ones as long as no model is created or deleted.
    std::function<std::vector<ModelMetrics>(size_t limit)> models;
    std::function<ServerStats()> server;
    // May be null.
    std::function<std::vector<PrincipalMetrics>()> principals = nullptr;
    std::function<uint64_t()> dropped_audit_records = nullptr;
    // Must outlive the endpoint. Null for no RPC metrics.
    const RpcMetrics* rpc = nullptr;
    // Answers every path except /metrics. If null, they are answered with 404.
    HttpHandler page = nullptr;
    // Wraps the handler of all paths, as WithAccess and WithHostCheck do. If null, everybody may read.
    std::function<HttpHandler(HttpHandler)> access = nullptr;
  };

  // Listens on `address`, "HOST:PORT" or "[IPV6]:PORT"; port 0 takes a free port. Exports at most
  // `max_models` models; with 0 the source of models is not called. Without `tls` nothing is encrypted. INVALID_ARGUMENT for an invalid
  // address, UNAVAILABLE if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const std::string& address,
                                                        size_t max_models, Sources sources,
                                                        const TlsFiles* tls = nullptr);
  // Waits for scrapes in progress; then it no longer listens.
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The port that the endpoint listens on.
  int port() const;
  // As HttpServer::UseCertificates.
  absl::Status UseCertificates(const TlsFiles& tls);

 private:
  class Endpoint;
  explicit Metrics(std::unique_ptr<Endpoint> endpoint);

  const std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace perceptrond
