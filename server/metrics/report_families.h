// A metric for each figure of a report, as the figures' definitions say (core/report/figures.h).
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "server/metrics/family.h"

namespace perceptrond {

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

}  // namespace perceptrond
