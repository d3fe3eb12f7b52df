// The /metrics endpoint. metrics.cc is the one file that knows prometheus-cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/rpc_metrics.h"
#include "server/page/http.h"

namespace perceptrond {

// Serves perceptrond_*, grpc_server_* and process_* in Prometheus's text form. Everything is read
// when it is scraped and nothing is kept between scrapes: learning pays nothing, and a deleted
// model's series are gone with the next scrape.
//
// Thread contract: the sources are called from the endpoint's threads, several at a time, until the
// destructor returns.
class Metrics {
 public:
  struct Sources {
    // At most so many models, and always the same ones while no model comes or goes.
    std::function<std::vector<ModelMetrics>(size_t limit)> models;
    std::function<ServerStats()> server;
    // Must outlive the endpoint.
    const RpcMetrics* rpc = nullptr;
    // Answers every path but /metrics; empty: they are 404.
    HttpHandler page = nullptr;
  };

  // Listens on `address`, "HOST:PORT" with HOST an IPv4 address, an IPv6 address in brackets, or a
  // name; port 0 takes a free one. At most `max_models` models are exported; 0: none, and the
  // source is not asked. INVALID_ARGUMENT if
  // the address is no such thing, UNAVAILABLE if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Metrics>> Start(const std::string& address,
                                                        size_t max_models, Sources sources);
  // Ends scrapes under way and stops listening. Takes up to 2 s: the HTTP server looks that often
  // whether to stop.
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The port listened on.
  int port() const;

 private:
  class Endpoint;
  explicit Metrics(std::unique_ptr<Endpoint> endpoint);

  const std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace perceptrond
