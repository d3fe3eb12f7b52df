// One run of `perceptronctl explain`: the input's examples, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/ctl/command.h"
#include "client/ctl/complaints.h"
#include "client/ctl/input.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

struct ExplainRunOptions {
  std::string name;
  InputOptions input;
  int32_t top = 20;
};

// Threads: one.
class ExplainRun {
 public:
  // Both must outlive the run.
  ExplainRun(const Globals& globals, const ExplainRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string Doing() const;
  Outcome Open();
  Outcome ExplainAll();
  // A row that is bad is counted, and does not end the run.
  Outcome ExplainRow(const Row& row);
  void Show(const perceptron::v1::ExplainResponse& response) const;

  const Globals& globals_;
  const ExplainRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  std::vector<std::string> label_names_;
  Complaints complaints_{options_.input.skip_bad_lines};
};

}  // namespace perceptrond::client
