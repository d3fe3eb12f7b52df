#include "server/metrics/metrics.h"

#include <CivetServer.h>
#include <civetweb.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/config/endpoint.h"
#include "server/metrics/family.h"
#include "server/metrics/stats.h"

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

// Rejects what civetweb's listening_ports accepts beyond an address: lists, and suffixes for TLS
// and redirection.
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

// A silent connection holds a thread until the time-out, and a scrape needs a thread: up to
// kThreads silent connections delay no scrape, N times as many delay one by N time-outs. Prometheus
// waits for 10 s by default. An idle thread costs the first pages of its stack and a buffer for the
// largest request. The time-out also limits the time to send a response: it cannot be much shorter.
constexpr const char* kThreads = "40";
constexpr const char* kMaxHttpRequestBytes = "8192";
constexpr const char* kRequestTimeoutMs = "2000";

// Refuses a Host that is a name, if only this machine can reach the endpoint; and answers HEAD,
// which prometheus-cpp does not support, for the health checks of load balancers. Returns 0 for
// other requests, and those of other paths.
template <bool kLoopback>
int AnswerMetrics(mg_connection* connection) {
  const mg_request_info* const request = mg_get_request_info(connection);
  if (absl::string_view(request->local_uri) != "/metrics") return 0;
  const char* const host = mg_get_header(connection, "Host");
  if (kLoopback && host != nullptr && !IsAddressOrLocalhost(host)) {
    mg_send_http_error(connection, 403, "%s",
                       "Metrics are served to this machine alone: use the host 127.0.0.1 or "
                       "localhost. A proxy must send that as Host.");
    return 403;
  }
  if (absl::string_view(request->request_method) != "HEAD") return 0;
  mg_printf(connection,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Connection: close\r\n\r\n");
  return 200;
}

// ---- The status page ----

// Further query parameters are ignored.
constexpr unsigned kMaxParameters = 16;

std::string Header(const mg_connection* connection, const char* name) {
  const char* const value = mg_get_header(connection, name);
  return value == nullptr ? "" : value;
}

HttpRequest ReadRequest(const mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  HttpRequest request;
  request.method = info.request_method;
  // Not local_uri, from which civetweb removes final dots, as model names may have. No path is used
  // as that of a file.
  request.path = info.local_uri_raw == nullptr ? "" : info.local_uri_raw;
  request.host = Header(connection, "Host");
  request.accept_encoding = Header(connection, "Accept-Encoding");
  request.if_none_match = Header(connection, "If-None-Match");
  if (info.query_string == nullptr) return request;
  // civetweb modifies it.
  std::string query = info.query_string;
  mg_header fields[kMaxParameters];
  const int count = mg_split_form_urlencoded(query.data(), fields, kMaxParameters);
  for (int i = 0; i < count; ++i) {
    const char* const value = fields[i].value;
    request.query.emplace_back(fields[i].name, value == nullptr ? "" : value);
  }
  return request;
}

void WriteAnswer(mg_connection* connection, const HttpAnswer& answer, bool with_body) {
  mg_response_header_start(connection, answer.status);
  for (const auto& [name, value] : answer.headers)
    mg_response_header_add(connection, name.c_str(), value.c_str(), -1);
  mg_response_header_add(connection, "Content-Length", absl::StrCat(answer.body.size()).c_str(),
                         -1);
  mg_response_header_send(connection);
  if (with_body) mg_write(connection, answer.body.data(), answer.body.size());
}

int HandlePage(mg_connection* connection, void* handler) {
  const HttpRequest request = ReadRequest(connection);
  const HttpAnswer answer = (*static_cast<const HttpHandler*>(handler))(request);
  const bool with_body = request.method != "HEAD" && answer.status != 304;
  WriteAnswer(connection, answer, with_body);
  return answer.status;
}

// ---- Starting ----

// What civetweb's callbacks need while it starts on this thread. They are the only way to get the
// reason of a failure, and the context that the page's handler is registered with.
struct StartState {
  std::string messages;
  const HttpHandler* page = nullptr;
};
thread_local StartState* start_state = nullptr;

int RecordMessage(const mg_connection*, const char* message) {
  if (start_state == nullptr) return 1;
  std::string& messages = start_state->messages;
  absl::StrAppend(&messages, messages.empty() ? "" : "; ", message);
  return 1;
}

// Registers the page's handler for every path that no other handler answers.
void AddPage(const mg_context* context) {
  if (start_state == nullptr || *start_state->page == nullptr) return;
  mg_set_request_handler(const_cast<mg_context*>(context), "/**", HandlePage,
                         const_cast<HttpHandler*>(start_state->page));
}

}  // namespace

class Metrics::Endpoint {
 public:
  // Throws civetweb's exception if it cannot listen.
  Endpoint(const std::string& address, const CivetCallbacks& callbacks,
           std::shared_ptr<prometheus::Collectable> collector,
           std::unique_ptr<const HttpHandler> page)
      : host_(address.substr(0, address.rfind(':'))),
        page_(std::move(page)),
        collector_(std::move(collector)),
        exposer_(std::make_unique<prometheus::Exposer>(
            std::vector<std::string>{"listening_ports", address, "num_threads", kThreads,
                                     "request_timeout_ms", kRequestTimeoutMs, "max_request_size",
                                     kMaxHttpRequestBytes, "enable_keep_alive", "no",
                                     // No other origin's page may read, which is the default.
                                     "access_control_allow_origin", "",
                                     "access_control_allow_methods", "",
                                     "access_control_allow_headers", ""},
            &callbacks)) {
    exposer_->RegisterCollectable(collector_);
  }

  // civetweb looks whether it must stop after each connection, and else every two seconds.
  ~Endpoint() {
    const int port = this->port();
    absl::Notification stopped;
    std::thread stop([this, &stopped] {
      exposer_.reset();
      stopped.Notify();
    });
    // Again and again: a connection may come before it must stop.
    do {
      Connect(port);
    } while (!stopped.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
    stop.join();
  }

  int port() const { return exposer_->GetListeningPorts().at(0); }

 private:
  // Connects to the endpoint, and leaves.
  void Connect(int port) const {
    char error[128];
    mg_connection* const connection =
        mg_connect_client(host_.c_str(), port, /*use_ssl=*/0, error, sizeof(error));
    if (connection != nullptr) mg_close_connection(connection);
  }

  const std::string host_;
  // Declared before the exposer, whose threads call it.
  const std::unique_ptr<const HttpHandler> page_;
  const std::shared_ptr<prometheus::Collectable> collector_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address,
                                                        size_t max_models, Sources sources) {
  if (const absl::Status status = CheckAddress(address); !status.ok()) return status;
  CivetCallbacks callbacks;
  callbacks.log_message = RecordMessage;
  callbacks.begin_request = IsLoopback(address) ? AnswerMetrics<true> : AnswerMetrics<false>;
  callbacks.init_context = AddPage;
  auto page = std::make_unique<const HttpHandler>(std::move(sources.page));
  StartState state;
  state.page = page.get();
  start_state = &state;
  std::string& reason = state.messages;
  std::unique_ptr<Endpoint> endpoint;
  try {
    endpoint = std::make_unique<Endpoint>(
        address, callbacks, std::make_shared<Collector>(max_models, std::move(sources)),
        std::move(page));
  } catch (const std::exception& error) {
    if (reason.empty()) reason = error.what();
  }
  start_state = nullptr;
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
