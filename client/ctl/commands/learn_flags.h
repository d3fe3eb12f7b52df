// The flags of `perceptronctl learn`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/commands/analyze.h"
#include "client/ctl/input.h"

namespace perceptrond::client {

struct LearnRunOptions {
  std::string name;
  // More models that learn the same examples.
  std::vector<std::string> also;
  InputOptions input;
  // Default 1, with until_converged 1000.
  std::optional<int64_t> passes;
  bool until_converged = false;
  // The seed.
  std::optional<uint64_t> shuffle;
  bool analyze = false;
  size_t batch = 512;
  bool compact = false;
  size_t window = 64;
  std::string unseen_indices = "stop";
  std::string producer;
  bool unnumbered = false;
  std::optional<int64_t> start_offset;
  std::optional<int64_t> passes_before;

  // All models, as they were named.
  std::vector<std::string> names() const {
    std::vector<std::string> all = {name};
    all.insert(all.end(), also.begin(), also.end());
    return all;
  }
};

void AddLearnFlags(CLI::App* command, LearnRunOptions* options);

}  // namespace perceptrond::client
