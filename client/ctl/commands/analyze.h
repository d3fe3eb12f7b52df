// Analyses on the command line: one run, and the result as text.
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "core/report/format.h"
#include "perceptron/v1/analysis_service.pb.h"

namespace perceptrond::client {

// Runs an analysis, showing its progress; Ctrl-C cancels it with kExitInterrupted. Call
// CatchInterrupts() first. *result is filled on success only.
Outcome RunAnalysis(const Client& client, const v1::AnalyzeRequest& request,
                    v1::AnalysisResult* result);

// The result as text of several lines: what is proven and, if it covers all the model's data, how
// the bound compares with `updates`, the updates of the model.
std::string DescribeResult(const perceptron::v1::AnalysisResult& result, uint64_t updates);
// "searching  6,513 examples  300 in the working set  margin 0.2 to 0.3".
Progress MakeProgress(const perceptron::v1::AnalysisProgress& progress);

}  // namespace perceptrond::client
