#include "server/metrics/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/http/http_server.h"
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

constexpr char kExpositionType[] = "text/plain; version=0.0.4; charset=utf-8";

HttpAnswer PlainText(int status, std::string text) {
  HttpAnswer answer;
  answer.status = status;
  answer.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  answer.body = std::move(text);
  return answer;
}

}  // namespace

class Metrics::Endpoint {
 public:
  Endpoint(size_t max_models, Sources sources)
      : max_models_(max_models), sources_(std::move(sources)) {}

  // Listens, and answers until it is destroyed.
  absl::Status Start(const std::string& address, const TlsFiles* tls) {
    HttpHandler handler = [this](const HttpRequest& request) { return Answer(request); };
    if (sources_.access != nullptr) handler = sources_.access(std::move(handler));
    absl::StatusOr<std::unique_ptr<HttpServer>> started =
        HttpServer::Start(address, tls, std::move(handler));
    if (!started.ok()) return started.status();
    server_ = *std::move(started);
    return absl::OkStatus();
  }

  HttpServer& server() { return *server_; }

 private:
  HttpAnswer Answer(const HttpRequest& request) {
    if (request.path != "/metrics") {
      return sources_.page == nullptr ? PlainText(404, "Not found: the metrics are at /metrics.\n")
                                      : sources_.page(request);
    }
    HttpAnswer answer;
    answer.headers = {{"Content-Type", kExpositionType}};
    // For the health checks of load balancers.
    if (request.method == "HEAD") return answer;
    if (request.method != "GET") {
      answer = PlainText(405, "Metrics are read-only: use GET or HEAD.\n");
      answer.headers.emplace_back("Allow", "GET, HEAD");
      return answer;
    }
    const absl::Time start = absl::Now();
    SetBody(request, prometheus::TextSerializer().Serialize(Collect()), answer);
    scrapes_.fetch_add(1, std::memory_order_relaxed);
    scrape_bytes_.fetch_add(answer.body.size(), std::memory_order_relaxed);
    scrape_nanoseconds_.fetch_add(
        static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::Now() - start)),
        std::memory_order_relaxed);
    return answer;
  }

  std::vector<prometheus::MetricFamily> Collect() const {
    MetricFamilies families;
    std::vector<ModelMetrics> models;
    if (max_models_ > 0) models = sources_.models(max_models_);
    if (models.size() > max_models_) models.resize(max_models_);
    AppendModelFamilies(models, families);
    AppendServerFamilies(sources_.server(), models.size(), families);
    AppendBuildFamily(families);
    if (sources_.rpc != nullptr) AppendRpcFamilies(*sources_.rpc, families);
    AppendProcessFamilies(ReadProcessStats(), families);
    if (sources_.principals != nullptr) AppendPrincipalFamilies(sources_.principals(), families);
    if (sources_.dropped_audit_records != nullptr) {
      AppendSingle("perceptrond_audit_records_dropped_total",
                   "Records of the audit log that were dropped, since it could not be written.",
                   MetricKind::kCounter, static_cast<double>(sources_.dropped_audit_records()),
                   families);
    }
    const auto counter = [&](const char* name, const char* help, double value) {
      AppendSingle(name, help, MetricKind::kCounter, value, families);
    };
    counter("perceptrond_scrapes_total", "Scrapes answered.", static_cast<double>(scrapes_));
    counter("perceptrond_scrape_seconds_total", "Time that making their answers took.",
            static_cast<double>(scrape_nanoseconds_) * 1e-9);
    counter("perceptrond_scrape_bytes_total", "Bytes of their answers, as sent.",
            static_cast<double>(scrape_bytes_));
    return ToPrometheus(families);
  }

  const size_t max_models_;
  const Sources sources_;
  std::atomic<uint64_t> scrapes_{0};
  std::atomic<uint64_t> scrape_bytes_{0};
  std::atomic<uint64_t> scrape_nanoseconds_{0};
  // The last member, since its threads use all the others.
  std::unique_ptr<HttpServer> server_;
};

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address,
                                                        size_t max_models, Sources sources,
                                                        const TlsFiles* tls) {
  auto endpoint = std::make_unique<Endpoint>(max_models, std::move(sources));
  if (absl::Status status = endpoint->Start(address, tls); !status.ok()) return status;
  return std::unique_ptr<Metrics>(new Metrics(std::move(endpoint)));
}

Metrics::Metrics(std::unique_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
Metrics::~Metrics() = default;

int Metrics::port() const { return endpoint_->server().port(); }

absl::Status Metrics::UseCertificates(const TlsFiles& tls) {
  return endpoint_->server().UseCertificates(tls);
}

}  // namespace perceptrond
