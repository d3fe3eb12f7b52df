// perceptrond_model_*: how each model's learning goes. A new metric of a model is one entry in
// model_families.cc.
#pragma once

#include <vector>

#include "server/metrics/family.h"
#include "server/metrics/model_metrics.h"

namespace perceptrond {

void AppendModelFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families);

}  // namespace perceptrond
