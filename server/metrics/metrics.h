// The HTTP endpoint of /metrics and the status page. metrics.cc is the only file that uses
// prometheus-cpp and civetweb.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
    // Must outlive the endpoint. Null for no RPC metrics.
    const RpcMetrics* rpc = nullptr;
    // Answers every path except /metrics. If null, they are answered with 404.
    HttpHandler page = nullptr;
  };

  // Listens on `address`, "HOST:PORT" with HOST an IPv4 address or a name; port 0 takes a free
  // port. Exports at most `max_models` models; with 0 the source of models is not called.
  // INVALID_ARGUMENT for an invalid address, UNAVAILABLE if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const std::string& address,
                                                        size_t max_models, Sources sources);
  // Waits for scrapes in progress, and up to 2 s for connections that send no request; then it no
  // longer listens.
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The port that the endpoint listens on.
  int port() const;

 private:
  class Endpoint;
  explicit Metrics(std::unique_ptr<Endpoint> endpoint);

  const std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace perceptrond
