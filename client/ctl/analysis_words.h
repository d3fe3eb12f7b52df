// Analyses in words.
#pragma once

#include <string>

#include "client/ctl/progress.h"
#include "perceptron/v1/analysis_service.pb.h"

namespace perceptrond::client {

// "analysis at revision 139 of all 6513 examples: separable, margin 0.2731 to 0.2731".
// A composition's analysis may also be out of date because its components have learned.
std::string DescribeAnalysis(const perceptron::v1::Analysis& analysis, bool composition = false);
// The whole result for a person, several lines: what is proven, and how it compares with the
// updates that the model made, if that is of one data set.
std::string DescribeResult(const perceptron::v1::AnalysisResult& result, uint64_t updates);
// "searching  6,513 examples  300 in work  margin 0.2 to 0.3".
Progress AnalysisInWords(const perceptron::v1::AnalysisProgress& progress);

}  // namespace perceptrond::client
