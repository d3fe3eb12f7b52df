#include <limits>
#include <utility>
#include <vector>

#include "server/metrics/family.h"
#include "server/metrics/rpc_metrics.h"

namespace perceptrond {
namespace {

MetricLabels RpcLabels(const RpcMethodMetrics& method) {
  return {{"grpc_type", RpcTypeName(method.type())},
          {"grpc_service", method.service()},
          {"grpc_method", method.method()}};
}

// Exports every code from the start, as go-grpc-prometheus does: a rate includes the first failure
// only if the series was 0 before.
void AppendHandled(const std::vector<const RpcMethodMetrics*>& methods, MetricFamilies& families) {
  MetricFamily family{
      "grpc_server_handled_total",
      "Total number of RPCs completed on the server, regardless of success or failure.",
      MetricKind::kCounter};
  for (const RpcMethodMetrics* method : methods) {
    for (size_t code = 0; code < kRpcCodes; ++code) {
      MetricLabels labels = RpcLabels(*method);
      labels.emplace_back("grpc_code", RpcCodeName(code));
      family.Add(std::move(labels), static_cast<double>(method->handled(code)));
    }
  }
  Append(std::move(family), families);
}

MetricHistogram Latencies(const RpcMethodMetrics& method) {
  MetricHistogram histogram;
  uint64_t count = 0;
  for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) {
    count += method.latency_bucket(i);
    const double bound = i < kRpcLatencyBounds.size() ? kRpcLatencyBounds[i]
                                                      : std::numeric_limits<double>::infinity();
    histogram.buckets.push_back({bound, count});
  }
  histogram.sum = method.latency_sum_seconds();
  return histogram;
}

void AppendLatencies(const std::vector<const RpcMethodMetrics*>& methods,
                     MetricFamilies& families) {
  MetricFamily family{
      "grpc_server_handling_seconds",
      "Histogram of response latency (seconds) of gRPC that had been application-level handled by "
      "the server.",
      MetricKind::kHistogram};
  for (const RpcMethodMetrics* method : methods) {
    family.samples.push_back({RpcLabels(*method), 0, Latencies(*method)});
  }
  Append(std::move(family), families);
}

}  // namespace

void AppendRpcFamilies(const RpcMetrics& rpc, MetricFamilies& families) {
  const std::vector<const RpcMethodMetrics*> methods = rpc.methods();
  const auto counter = [&](const char* name, const char* help,
                           uint64_t (RpcMethodMetrics::*value)() const) {
    MetricFamily family{name, help, MetricKind::kCounter};
    for (const RpcMethodMetrics* method : methods) {
      family.Add(RpcLabels(*method), static_cast<double>((method->*value)()));
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
  AppendSingle("perceptrond_in_flight_rpcs", "RPCs in flight: started and not finished.",
               MetricKind::kGauge, static_cast<double>(rpc.in_flight()), families);
}

}  // namespace perceptrond
