// Analyses in words.
#pragma once

#include <string>

#include "client/ctl/progress.h"
#include "core/report/format.h"
#include "perceptron/v1/analysis_service.pb.h"

namespace perceptrond::client {

// The whole result for a person, several lines: what is proven, and how it compares with the
// updates that the model made, if that is of one data set.
std::string DescribeResult(const perceptron::v1::AnalysisResult& result, uint64_t updates);
// "searching  6,513 examples  300 in work  margin 0.2 to 0.3".
Progress AnalysisInWords(const perceptron::v1::AnalysisProgress& progress);

}  // namespace perceptrond::client
