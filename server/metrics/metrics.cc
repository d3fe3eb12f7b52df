#include "server/metrics/metrics.h"

#include <CivetServer.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/metrics/model_families.h"
#include "server/metrics/page_handler.h"
#include "server/metrics/process_stats.h"
#include "server/metrics/rpc_families.h"
#include "server/metrics/server_families.h"

namespace perceptrond {
namespace {

prometheus::ClientMetric ToPrometheus(const MetricSample& sample, MetricKind kind) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
  switch (kind) {
    case MetricKind::kCounter:
      metric.counter.value = sample.value;
      break;
    case MetricKind::kGauge:
      metric.gauge.value = sample.value;
      break;
    case MetricKind::kHistogram:
      for (const MetricHistogram::Bucket& bucket : sample.histogram.buckets) {
        metric.histogram.bucket.push_back({bucket.cumulative_count, bucket.upper_bound});
        metric.histogram.sample_count = bucket.cumulative_count;
      }
      metric.histogram.sample_sum = sample.histogram.sum;
      break;
  }
  return metric;
}

prometheus::MetricType ToPrometheus(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

std::vector<prometheus::MetricFamily> ToPrometheus(const MetricFamilies& families) {
  std::vector<prometheus::MetricFamily> converted;
  for (const MetricFamily& family : families) {
    prometheus::MetricFamily& one = converted.emplace_back();
    one.name = family.name;
    one.help = family.help;
    one.type = ToPrometheus(family.kind);
    for (const MetricSample& sample : family.samples)
      one.metric.push_back(ToPrometheus(sample, family.kind));
  }
  return converted;
}

class Collector final : public prometheus::Collectable {
 public:
  Collector(size_t max_models, Metrics::Sources sources)
      : max_models_(max_models), sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    MetricFamilies families;
    std::vector<ModelMetrics> models;
    if (max_models_ > 0) models = sources_.models(max_models_);
    if (models.size() > max_models_) models.resize(max_models_);
    AppendModelFamilies(models, families);
    AppendServerFamilies(sources_.server(), models.size(), families);
    AppendBuildFamily(families);
    if (sources_.rpc != nullptr) AppendRpcFamilies(*sources_.rpc, families);
    AppendProcessFamilies(ReadProcessStats(), families);
    return ToPrometheus(families);
  }

 private:
  const size_t max_models_;
  const Metrics::Sources sources_;
};

// ---- HTTP ----

// Civetweb's listening_ports takes more than an address (lists, suffixes for TLS and redirection);
// this is an address.
absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port;
  const bool ok = colon != std::string::npos && colon > 0 &&
                  address.find_first_of(", +") == std::string::npos &&
                  address.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                  absl::SimpleAtoi(address.substr(colon + 1), &port) && port <= 65535;
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("metrics address \"", address, "\" is not HOST:PORT"));
}

// A connection that says nothing holds a thread until its time is over, and a scrape waits for a
// thread: up to kThreads silent ones delay nobody, N times as many delay a scrape by N times the
// time-out. Prometheus waits 10 s by default. A thread that waits costs its stack's first pages and
// a buffer for the largest request. The time-out also bounds how long an answer may take to send:
// it cannot be much shorter.
constexpr const char* kThreads = "40";
constexpr const char* kMostRequestBytes = "8192";
constexpr const char* kRequestTimeoutMs = "2000";

// Answers HEAD, which prometheus-cpp does not know: for load balancers that ask so whether anybody
// is there. 0: not answered here.
int AnswerHead(mg_connection* connection) {
  const mg_request_info* const request = mg_get_request_info(connection);
  if (absl::string_view(request->request_method) != "HEAD" ||
      absl::string_view(request->local_uri) != "/metrics")
    return 0;
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Connection: close\r\n\r\n");
  return 200;
}

// While civetweb starts on this thread: what it says, the reason of a failure, which it tells in no
// other way; and the handler for its context, which it hands out in no other way.
struct Starting {
  std::string complaints;
  const HttpHandler* page = nullptr;
};
thread_local Starting* starting = nullptr;

int Complain(const mg_connection*, const char* message) {
  if (starting == nullptr) return 1;
  std::string& said = starting->complaints;
  absl::StrAppend(&said, said.empty() ? "" : "; ", message);
  return 1;
}

void AddPage(const mg_context* context) {
  if (starting != nullptr && *starting->page != nullptr)
    HandleAllPaths(const_cast<mg_context*>(context), *starting->page);
}

}  // namespace

class Metrics::Endpoint {
 public:
  // Throws what civetweb throws if it cannot listen.
  Endpoint(const std::string& address, const CivetCallbacks& callbacks,
           std::shared_ptr<Collector> collector, std::unique_ptr<const HttpHandler> page)
      : page_(std::move(page)),
        collector_(std::move(collector)),
        exposer_(
            {"listening_ports", address, "num_threads", kThreads, "request_timeout_ms",
             kRequestTimeoutMs, "max_request_size", kMostRequestBytes, "enable_keep_alive", "no"},
            &callbacks) {
    exposer_.RegisterCollectable(collector_);
  }

  int port() const { return exposer_.GetListeningPorts().at(0); }

 private:
  // Outlives the exposer, whose threads call it.
  const std::unique_ptr<const HttpHandler> page_;
  const std::shared_ptr<Collector> collector_;
  prometheus::Exposer exposer_;
};

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address,
                                                        size_t max_models, Sources sources) {
  if (const absl::Status status = CheckAddress(address); !status.ok()) return status;
  CivetCallbacks callbacks;
  callbacks.log_message = Complain;
  callbacks.begin_request = AnswerHead;
  callbacks.init_context = AddPage;
  auto page = std::make_unique<const HttpHandler>(std::move(sources.page));
  Starting start;
  start.page = page.get();
  starting = &start;
  std::string& reason = start.complaints;
  std::unique_ptr<Endpoint> endpoint;
  try {
    endpoint = std::make_unique<Endpoint>(
        address, callbacks, std::make_shared<Collector>(max_models, std::move(sources)),
        std::move(page));
  } catch (const std::exception& error) {
    if (reason.empty()) reason = error.what();
  }
  starting = nullptr;
  if (endpoint == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen for metrics on ", address, ": ", reason));
  }
  return std::unique_ptr<Metrics>(new Metrics(std::move(endpoint)));
}

Metrics::Metrics(std::unique_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
Metrics::~Metrics() = default;

int Metrics::port() const { return endpoint_->port(); }

}  // namespace perceptrond
