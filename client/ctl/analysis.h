// One analysis from the command line: its flags, its run, and its result as text.
#pragma once

#include <cstdint>
#include <string>

#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "core/words/analysis.h"
#include "perceptron/v1/analysis_service.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perceptrond::client {

class AnalysisFlags {
 public:
  // Adds --PREFIXgap and the others, which need `needed` if there is one. Must outlive the parsing.
  void AddTo(CLI::App* command, const std::string& prefix = "", CLI::Option* needed = nullptr);
  void Fill(perceptron::v1::AnalyzeRequest* request) const;

 private:
  double gap_ = 1e-6;
  uint32_t max_rounds_ = 1000;
  uint32_t max_support_examples_ = 4000;
  uint32_t max_certificate_examples_ = 500;
};

// Interrupts must be caught already. Fills *result, or says why it could not: kExitInterrupted
// once Ctrl-C has cancelled it.
Outcome RunAnalysis(const Client& client, const v1::AnalyzeRequest& request,
                    v1::AnalysisResult* result);

// The whole result for a person, several lines: what is proven, and how it compares with the
// updates that the model made, if that is of one data set.
std::string DescribeResult(const perceptron::v1::AnalysisResult& result, uint64_t updates);
// "searching  6,513 examples  300 in work  margin 0.2 to 0.3".
Progress AnalysisInWords(const perceptron::v1::AnalysisProgress& progress);

}  // namespace perceptrond::client
