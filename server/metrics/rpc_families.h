// grpc_server_*: calls by method, as go-grpc-prometheus names them.
#pragma once

#include "server/metrics/family.h"
#include "server/metrics/rpc_metrics.h"

namespace perceptrond {

void AppendRpcFamilies(const RpcMetrics& rpc, MetricFamilies& families);

}  // namespace perceptrond
