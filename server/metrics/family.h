// Metric families in a form that belongs to no library, and the functions that make them. A figure
// of a model's report is defined in proto/perceptron/v1/report.proto; any other metric of a model
// is an entry in model_families.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/connections.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace perceptrond {

class RpcMetrics;
struct ModelMetrics;
struct PrincipalMetrics;
struct ProcessStats;
struct ServerStats;

struct MetricHistogram {
  struct Bucket {
    // Inclusive.
    double upper_bound = 0;
    uint64_t cumulative_count = 0;
  };
  std::vector<Bucket> buckets;
  double sum = 0;
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricSample {
  MetricLabels labels;
  // The value of a counter or a gauge.
  double value = 0;
  MetricHistogram histogram;
};

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricFamily {
  // With its unit, by the naming conventions of Prometheus.
  std::string name;
  // One sentence.
  std::string help;
  MetricKind kind = MetricKind::kGauge;
  std::vector<MetricSample> samples = {};

  void Add(MetricLabels labels, double value) { samples.push_back({std::move(labels), value, {}}); }
};

using MetricFamilies = std::vector<MetricFamily>;

// Appends the family, unless it has no samples.
inline void Append(MetricFamily family, MetricFamilies& families) {
  if (!family.samples.empty()) families.push_back(std::move(family));
}

// Appends a family of one sample without labels, unless the value is absent.
inline void AppendSingle(const char* name, const char* help, MetricKind kind,
                         std::optional<double> value, MetricFamilies& families) {
  MetricFamily family{name, help, kind};
  if (value) family.Add({}, *value);
  Append(std::move(family), families);
}

// grpc_server_*: calls by method, with the names of go-grpc-prometheus.
void AppendRpcFamilies(const RpcMetrics& rpc, MetricFamilies& families);

// perceptrond_* of the server as a whole. `exported` is the number of models that have series of
// their own.
void AppendServerFamilies(const ServerStats& stats, size_t exported, MetricFamilies& families);
// perceptrond_connections_* and perceptrond_calls_*.
void AppendTransportFamilies(const Connections::Stats& stats, MetricFamilies& families);
// perceptrond_principal_*: calls and examples by principal.
void AppendPrincipalFamilies(const std::vector<PrincipalMetrics>& principals,
                             MetricFamilies& families);
// perceptrond_build_info.
void AppendBuildFamily(MetricFamilies& families);
// process_*.
void AppendProcessFamilies(const ProcessStats& stats, MetricFamilies& families);

// A report and the model that it is about.
struct NamedReport {
  // Without "models/".
  const std::string& model;
  const google::protobuf::Message& report;
};

// Appends perceptrond_model_* families: a counter if the name ends with "_total", else a gauge. A
// figure that is not valid in a report has no sample there. The reports are of one type.
// O(reports x figures).
void AppendReportFamilies(const std::vector<NamedReport>& reports, MetricFamilies& families);

// perceptrond_model_*: the figures of the models' reports, and the other metrics of each model.
void AppendModelFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families);

}  // namespace perceptrond
