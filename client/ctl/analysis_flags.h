// What an analysis may take: flags of `analyze`, and of `learn --analyze`.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace perceptrond::client
