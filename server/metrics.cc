#include "server/metrics.h"

#include <CivetServer.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/build_info.h"
#include "server/process_stats.h"

namespace perceptrond {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;
using Families = std::vector<MetricFamily>;

MetricFamily Family(const char* name, const char* help, MetricType type) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

// Appends a sample to a counter or a gauge.
void Sample(MetricFamily& family, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

// Families without a sample are left out.
void Append(MetricFamily family, Families& families) {
  if (!family.metric.empty()) families.push_back(std::move(family));
}

void AppendSingle(const char* name, const char* help, MetricType type, std::optional<double> value,
                  Families& families) {
  MetricFamily family = Family(name, help, type);
  if (value) Sample(family, {}, *value);
  Append(std::move(family), families);
}

// ---- Models ----

// A family of one sample a model; no value, no sample.
struct ModelFamily {
  const char* name;
  const char* help;
  MetricType type;
  std::optional<double> (*value)(const ModelMetrics&);
};

using M = const ModelMetrics&;
using Value = std::optional<double>;
constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;

Value Flag(std::optional<bool> flag) { return flag ? Value(*flag ? 1 : 0) : Value(); }

const ModelFamily kModelFamilies[] = {
    {"perceptrond_model_examples_total",
     "Examples judged for learning; rejected and replayed ones are not among them.", kCounter,
     [](M m) { return Value(m.report.counters.examples); }},
    {"perceptrond_model_mistakes_total",
     "Examples found on the wrong side when they arrived, before the model could learn them.",
     kCounter, [](M m) { return Value(m.report.counters.mistakes); }},
    {"perceptrond_model_updates_total", "Changes to the weights.", kCounter,
     [](M m) { return Value(m.report.counters.updates); }},
    {"perceptrond_model_duplicates_total",
     "Examples whose number was accounted for already: acknowledged, not learned again.", kCounter,
     [](M m) { return Value(m.report.counters.duplicates); }},
    {"perceptrond_model_window_examples", "Examples in the window of the windowed error and risk.",
     kGauge, [](M m) { return Value(m.report.window_examples); }},
    {"perceptrond_model_window_risk", "Perceptron risk per example, over the window.", kGauge,
     [](M m) { return m.report.window_risk; }},
    {"perceptrond_model_streak_examples", "Correct answers in a row since the last update.", kGauge,
     [](M m) { return Value(m.report.counters.streak); }},
    {"perceptrond_model_weight_norm", "Euclidean norm of the weights.", kGauge,
     [](M m) { return Value(m.report.weight_norm); }},
    {"perceptrond_model_radius", "Largest norm of an example judged: R of the convergence theorem.",
     kGauge, [](M m) { return Value(std::sqrt(m.report.counters.squared_radius)); }},
    {"perceptrond_model_margin_ceiling",
     "No weights separate the examples seen with a larger margin than this.", kGauge,
     [](M m) { return m.report.margin_ceiling; }},
    {"perceptrond_model_margin_floor",
     "Largest margin the weights attained over a whole pass without a change.", kGauge,
     [](M m) { return m.report.margin_floor; }},
    {"perceptrond_model_bound_in_use_ratio",
     "How much of the convergence theorem's room for updates is in use, at most 1.", kGauge,
     [](M m) { return m.report.bound_in_use; }},
    {"perceptrond_model_update_bound",
     "No run over the data of the pass behind the margin floor makes more updates than this.",
     kGauge, [](M m) { return m.report.update_bound; }},
    {"perceptrond_model_margin_refuted",
     "1 if the examples are proven not separable with the model's margin of interest, else 0.",
     kGauge, [](M m) { return Flag(m.report.margin_refuted); }},
    {"perceptrond_model_last_pass_mistakes", "Mistakes of the latest pass that a producer marked.",
     kGauge,
     [](M m) {
       const auto& pass = m.report.counters.last_pass;
       return pass ? Value(pass->mistakes) : Value();
     }},
    {"perceptrond_model_last_pass_converged",
     "1 if the latest pass that a producer marked changed nothing, else 0.", kGauge,
     [](M m) {
       const auto& pass = m.report.counters.last_pass;
       return pass ? Flag(pass->converged) : Value();
     }},
    {"perceptrond_model_revision", "The model's revision: names a state of the weights exactly.",
     kGauge, [](M m) { return Value(m.revision); }},
    {"perceptrond_model_journal_bytes", "Bytes journaled since the last snapshot.", kGauge,
     [](M m) { return Value(m.journal_bytes); }},
    {"perceptrond_model_snapshot_timestamp_seconds",
     "When the last snapshot was taken, since the Unix epoch.", kGauge,
     [](M m) {
       return m.snapshot_time == absl::InfinitePast()
                  ? Value()
                  : Value(absl::ToDoubleSeconds(m.snapshot_time - absl::UnixEpoch()));
     }},
    {"perceptrond_model_memory_bytes", "Memory that the model takes.", kGauge,
     [](M m) { return Value(m.memory_bytes); }},
    {"perceptrond_model_in_memory", "1 if the model is loaded, 0 if it is on disk only.", kGauge,
     [](M m) { return Flag(m.in_memory); }},
};

MetricFamily RejectedFamily(const std::vector<ModelMetrics>& models) {
  MetricFamily family = Family("perceptrond_model_rejected_total",
                               "Examples refused, by the reason their error gave.", kCounter);
  for (const ModelMetrics& model : models) {
    for (size_t fault = 0; fault < kFaults; ++fault) {
      const uint64_t rejected = model.report.counters.rejected[fault];
      if (rejected == 0) continue;
      Sample(family, {{"model_name", model.id}, {"reason", FaultReason(static_cast<Fault>(fault))}},
             static_cast<double>(rejected));
    }
  }
  return family;
}

MetricFamily ErrorFamily(const std::vector<ModelMetrics>& models) {
  MetricFamily family = Family("perceptrond_model_progressive_error_ratio",
                               "Mistakes per example judged, over the model's lifetime and over "
                               "the window.",
                               kGauge);
  for (const ModelMetrics& model : models) {
    const auto sample = [&](const char* scope, Value value) {
      if (value) Sample(family, {{"model_name", model.id}, {"scope", scope}}, *value);
    };
    sample("lifetime", model.report.progressive_error);
    sample("window", model.report.window_error);
  }
  return family;
}

void AppendModels(const std::vector<ModelMetrics>& models, Families& families) {
  for (const ModelFamily& description : kModelFamilies) {
    MetricFamily family = Family(description.name, description.help, description.type);
    for (const ModelMetrics& model : models) {
      if (const Value value = description.value(model)) {
        Sample(family, {{"model_name", model.id}}, *value);
      }
    }
    Append(std::move(family), families);
  }
  Append(RejectedFamily(models), families);
  Append(ErrorFamily(models), families);
}

// ---- Server ----

void AppendServer(const ServerStats& stats, size_t exported, Families& families) {
  // The two were not read at one moment.
  const uint64_t models = std::max<uint64_t>(stats.models, exported);
  const auto gauge = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kGauge, static_cast<double>(value), families);
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    AppendSingle(name, help, kCounter, static_cast<double>(value), families);
  };
  gauge("perceptrond_models", "Models that exist, loaded or not.", models);
  gauge("perceptrond_models_not_exported",
        "Models without series of their own, because there are more than --metrics-max-models.",
        models - exported);
  gauge("perceptrond_models_loaded", "Models in memory.", stats.models_loaded);
  gauge("perceptrond_memory_bytes", "Memory that the loaded models take.", stats.memory_bytes);
  gauge("perceptrond_memory_budget_bytes", "Memory that the loaded models may take.",
        stats.memory_budget_bytes);
  counter("perceptrond_journal_commits_total", "Batches of updates made durable.",
          stats.journal_commits);
  counter("perceptrond_journal_commit_failures_total",
          "Batches of updates that could not be made durable.", stats.journal_commit_failures);
  counter("perceptrond_loads_total", "Models loaded into memory.", stats.loads);
  counter("perceptrond_evictions_total", "Models taken out of memory to keep to the budget.",
          stats.evictions);
  counter("perceptrond_snapshots_total", "Snapshots written.", stats.snapshots);
}

void AppendBuild(Families& families) {
  const BuildInfo& build = GetBuildInfo();
  MetricFamily family =
      Family("perceptrond_build_info", "What this server was built from; always 1.", kGauge);
  Sample(family,
         {{"version", build.version}, {"revision", build.revision}, {"compiler", build.compiler}},
         1);
  Append(std::move(family), families);
}

void AppendProcess(const ProcessStats& stats, Families& families) {
  const auto number = [](std::optional<uint64_t> value) {
    return value ? Value(static_cast<double>(*value)) : Value();
  };
  AppendSingle("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
               kCounter, stats.cpu_seconds, families);
  AppendSingle("process_resident_memory_bytes", "Resident memory size in bytes.", kGauge,
               number(stats.resident_bytes), families);
  AppendSingle("process_virtual_memory_bytes", "Virtual memory size in bytes.", kGauge,
               number(stats.virtual_bytes), families);
  AppendSingle("process_open_fds", "Number of open file descriptors.", kGauge,
               number(stats.open_fds), families);
  AppendSingle("process_max_fds", "Maximum number of open file descriptors.", kGauge,
               number(stats.max_fds), families);
  AppendSingle("process_start_time_seconds",
               "Start time of the process since unix epoch in seconds.", kGauge,
               stats.start_time_seconds, families);
}

// ---- RPCs ----

Labels RpcLabels(const RpcMethodMetrics& method) {
  return {{"grpc_type", RpcTypeName(method.type())},
          {"grpc_service", method.service()},
          {"grpc_method", method.method()}};
}

// Exports every code from the start, as go-grpc-prometheus does: a rate sees the first failure only
// if there was a 0.
void AppendHandled(const std::vector<const RpcMethodMetrics*>& methods, Families& families) {
  MetricFamily family = Family(
      "grpc_server_handled_total",
      "Total number of RPCs completed on the server, regardless of success or failure.", kCounter);
  for (const RpcMethodMetrics* method : methods) {
    for (size_t code = 0; code < kRpcCodes; ++code) {
      Labels labels = RpcLabels(*method);
      labels.push_back({"grpc_code", RpcCodeName(code)});
      Sample(family, std::move(labels), static_cast<double>(method->handled(code)));
    }
  }
  Append(std::move(family), families);
}

ClientMetric::Histogram Latencies(const RpcMethodMetrics& method) {
  ClientMetric::Histogram histogram;
  for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) {
    histogram.sample_count += method.latency_bucket(i);
    ClientMetric::Bucket bucket;
    bucket.upper_bound = i < kRpcLatencyBounds.size() ? kRpcLatencyBounds[i]
                                                      : std::numeric_limits<double>::infinity();
    bucket.cumulative_count = histogram.sample_count;
    histogram.bucket.push_back(bucket);
  }
  histogram.sample_sum = method.latency_sum_seconds();
  return histogram;
}

void AppendLatencies(const std::vector<const RpcMethodMetrics*>& methods, Families& families) {
  MetricFamily family = Family(
      "grpc_server_handling_seconds",
      "Histogram of response latency (seconds) of gRPC that had been application-level handled by "
      "the server.",
      MetricType::Histogram);
  for (const RpcMethodMetrics* method : methods) {
    ClientMetric metric;
    metric.label = RpcLabels(*method);
    metric.histogram = Latencies(*method);
    family.metric.push_back(std::move(metric));
  }
  Append(std::move(family), families);
}

void AppendRpcs(const RpcMetrics& rpc, Families& families) {
  const std::vector<const RpcMethodMetrics*> methods = rpc.methods();
  const auto counter = [&](const char* name, const char* help,
                           uint64_t (RpcMethodMetrics::*value)() const) {
    MetricFamily family = Family(name, help, kCounter);
    for (const RpcMethodMetrics* method : methods) {
      Sample(family, RpcLabels(*method), static_cast<double>((method->*value)()));
    }
    Append(std::move(family), families);
  };
  counter("grpc_server_started_total", "Total number of RPCs started on the server.",
          &RpcMethodMetrics::started);
  counter("grpc_server_msg_received_total",
          "Total number of RPC stream messages received on the server.",
          &RpcMethodMetrics::received);
  counter("grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server.",
          &RpcMethodMetrics::sent);
  AppendHandled(methods, families);
  AppendLatencies(methods, families);
  AppendSingle("perceptrond_in_flight_rpcs", "RPCs begun and not yet handled.", kGauge,
               static_cast<double>(rpc.in_flight()), families);
}

class Collector final : public prometheus::Collectable {
 public:
  Collector(size_t max_models, Metrics::Sources sources)
      : max_models_(max_models), sources_(std::move(sources)) {}

  Families Collect() const override {
    Families families;
    std::vector<ModelMetrics> models;
    if (max_models_ > 0) models = sources_.models(max_models_);
    if (models.size() > max_models_) models.resize(max_models_);
    AppendModels(models, families);
    AppendServer(sources_.server(), models.size(), families);
    AppendBuild(families);
    if (sources_.rpc != nullptr) AppendRpcs(*sources_.rpc, families);
    AppendProcess(ReadProcessStats(), families);
    return families;
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

// What civetweb says while it starts on this thread: the reason of a failure, which it tells in no
// other way.
thread_local std::string* complaints = nullptr;

int Complain(const mg_connection*, const char* message) {
  if (complaints != nullptr) absl::StrAppend(complaints, complaints->empty() ? "" : "; ", message);
  return 1;
}

}  // namespace

class Metrics::Endpoint {
 public:
  // Throws what civetweb throws if it cannot listen.
  Endpoint(const std::string& address, const CivetCallbacks& callbacks,
           std::shared_ptr<Collector> collector)
      : collector_(std::move(collector)),
        exposer_({"listening_ports", address, "num_threads", "2"}, &callbacks) {
    exposer_.RegisterCollectable(collector_);
  }

  int port() const { return exposer_.GetListeningPorts().at(0); }

 private:
  const std::shared_ptr<Collector> collector_;
  prometheus::Exposer exposer_;
};

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const std::string& address,
                                                        size_t max_models, Sources sources) {
  if (const absl::Status status = CheckAddress(address); !status.ok()) return status;
  CivetCallbacks callbacks;
  callbacks.log_message = Complain;
  std::string reason;
  complaints = &reason;
  std::unique_ptr<Endpoint> endpoint;
  try {
    endpoint = std::make_unique<Endpoint>(
        address, callbacks, std::make_shared<Collector>(max_models, std::move(sources)));
  } catch (const std::exception& error) {
    if (reason.empty()) reason = error.what();
  }
  complaints = nullptr;
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
