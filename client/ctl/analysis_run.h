// One analysis from the command line: progress while it runs, Ctrl-C to cancel it.
#pragma once

#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

// Interrupts must be caught already. Fills *result, or says why it could not: kExitInterrupted
// once Ctrl-C has cancelled it.
Outcome RunAnalysis(const Client& client, const v1::AnalyzeRequest& request,
                    v1::AnalysisResult* result);

}  // namespace perceptrond::client
