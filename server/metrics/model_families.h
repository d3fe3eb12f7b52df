// perceptrond_model_*: the metrics of each model. A figure of the report is defined in
// proto/perceptron/v1/report.proto; any other metric of a model is an entry in model_families.cc.
#pragma once

#include <vector>

#include "server/metrics/family.h"
#include "server/metrics/model_metrics.h"

namespace perceptrond {

void AppendModelFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families);

}  // namespace perceptrond
