// The options of `perceptronctl bench`, and a check that this machine has the memory for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

struct BenchOptions {
  // Model; empty: a temporary one, deleted after the run.
  std::string name;
  std::string work = "learn";
  size_t streams = 1;
  // Examples per second over all streams; 0: as many as the server accepts.
  double rate = 0;
  // Examples per message; default 100, for calls 1.
  std::optional<size_t> batch;
  size_t window = 64;
  double seconds = 10;
  double warmup = 1;
  // Non-zero features of an example; default 75, at most `size`.
  std::optional<uint32_t> features;
  // Dimension of the temporary model.
  uint32_t size = 1U << 20;
  bool dense = false;
  double mistakes = 0;
  double invalid = 0;
  uint32_t seed = 1;

  LoadOptions::Work Work() const {
    if (work == "learn") return LoadOptions::Work::kLearn;
    return work == "predict" ? LoadOptions::Work::kPredict : LoadOptions::Work::kCall;
  }
  uint32_t Features() const { return features.value_or(std::min(75U, size)); }
  size_t Batch() const { return batch.value_or(Work() == LoadOptions::Work::kCall ? 1 : 100); }
};

// Returns an error message if the examples and the messages in flight of all streams need more than
// a quarter of this machine's memory; else an empty string.
std::string CheckMemory(const LoadOptions& load, const SyntheticRowsOptions& rows, size_t streams);

}  // namespace perceptrond::client
