#include "client/ctl/analysis_flags.h"

#include <CLI/CLI.hpp>

#include "client/ctl/number_flag.h"

namespace perceptrond::client {

void AnalysisFlags::AddTo(CLI::App* command, const std::string& prefix, CLI::Option* needed) {
  const auto add = [&](const char* name, auto& value, const CLI::Validator& range,
                       const char* help) {
    CLI::Option* const option =
        command->add_option("--" + prefix + name, value, help)->check(range)->capture_default_str();
    if (needed != nullptr) option->needs(needed);
  };
  add("gap", gap_, Between(1e-12, 0.999),
      "How far apart, relatively, the margin's two bounds may end");
  add("max-rounds", max_rounds_, CLI::Range(1U, 1'000'000U),
      "How often all examples are looked through at most");
  add("max-support-examples", max_support_examples_, CLI::Range(1U, 20'000U),
      "Examples that may support the margin; with more of them the bounds stay apart. Memory grows "
      "with the square: 4000 take 64 MB");
  add("max-certificate-examples", max_certificate_examples_, CLI::Range(1U, 2'000U),
      "Examples that a proof that nothing separates them may combine; where it takes more it is "
      "left undecided. Time grows with the cube and more: 500 take seconds");
}

void AnalysisFlags::Fill(perceptron::v1::AnalyzeRequest* request) const {
  request->set_relative_gap(gap_);
  request->set_max_rounds(max_rounds_);
  request->set_max_support_examples(max_support_examples_);
  request->set_max_certificate_examples(max_certificate_examples_);
}

}  // namespace perceptrond::client
