// The result and the progress of `perceptronctl learn`, as text and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/terminal.h"
#include "client/learn_stream.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// What `learn --help` says of formats and of the result.
extern const char kLearnFooter[];

struct LearnSummary {
  std::string model;
  std::string producer;
  // Rows sent.
  uint64_t rows = 0;
  uint64_t bad_lines = 0;
  LearnTotals totals;
  std::vector<perceptron::v1::PassSummary> passes;
  absl::Duration elapsed;
  // The model after the run, if it could be read.
  std::optional<perceptron::v1::Model> now;
  std::optional<perceptron::v1::AnalysisResult> analysis;

  bool converged() const { return !passes.empty() && passes.back().converged(); }
  std::string Text() const;
  std::string Json() const;
};

// A line for a pass, without a line break.
std::string DescribePass(const perceptron::v1::PassSummary& pass);

struct LearnPosition {
  // Number of the pass, from 1.
  int64_t pass = 1;
  // Number of passes, if known.
  std::optional<int64_t> passes;
  // Fraction of this pass read, by bytes; absent if the size of the input is unknown.
  std::optional<double> read;
};

// "[=====>     ] 42 %  pass 3/10  54,000 examples  1,520 mistakes  105,564/s": the fraction of the
// whole run if the number of passes is known, else of the pass. Adds the state of `report`, if
// given.
Progress LearnProgress(const LearnPosition& position, const LearnTotals& totals,
                       absl::Duration elapsed,
                       const std::optional<perceptron::v1::ConvergenceReport>& report = {});

}  // namespace perceptrond::client
