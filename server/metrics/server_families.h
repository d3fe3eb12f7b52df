// perceptrond_* of the server as a whole, perceptrond_build_info, process_*.
#pragma once

#include <cstddef>

#include "server/metrics/family.h"
#include "server/metrics/model_metrics.h"
#include "server/metrics/process_stats.h"

namespace perceptrond {

// `exported`: how many models have series of their own.
void AppendServerFamilies(const ServerStats& stats, size_t exported, MetricFamilies& families);
void AppendBuildFamily(MetricFamilies& families);
void AppendProcessFamilies(const ProcessStats& stats, MetricFamilies& families);

}  // namespace perceptrond
