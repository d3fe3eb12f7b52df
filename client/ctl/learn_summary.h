// What a run of `perceptronctl learn` did, in words and in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/learn_stream.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

struct LearnSummary {
  std::string model;
  std::string producer;
  // Pushed.
  uint64_t rows = 0;
  uint64_t bad_lines = 0;
  LearnTotals totals;
  std::vector<perceptron::v1::PassSummary> passes;
  absl::Duration elapsed;
  // The model afterwards, if it could be had.
  std::optional<perceptron::v1::Model> now;
  std::optional<perceptron::v1::AnalysisResult> analysis;

  bool converged() const { return !passes.empty() && passes.back().converged(); }
  std::string Text() const;
  std::string Json() const;
};

}  // namespace perceptrond::client
