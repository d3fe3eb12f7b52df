// The options of `perceptronctl bench`, and whether this machine has the memory for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

struct BenchOptions {
  // Empty: a model made for the run, and deleted after it.
  std::string name;
  std::string work = "learn";
  size_t streams = 1;
  // Examples a second of all streams together; 0: as many as may be.
  double rate = 0;
  // Default 100, of calls 1.
  std::optional<size_t> batch;
  size_t window = 64;
  double seconds = 10;
  double warmup = 1;
  // Default 75, or as many as the model has dimensions.
  std::optional<uint32_t> features;
  // Of the model made for the run.
  uint32_t size = 1U << 20;
  bool dense = false;
  double mistakes = 0;
  double refused = 0;
  uint32_t seed = 1;

  LoadOptions::Work Work() const {
    if (work == "learn") return LoadOptions::Work::kLearn;
    return work == "predict" ? LoadOptions::Work::kPredict : LoadOptions::Work::kCall;
  }
  uint32_t Features() const { return features.value_or(std::min(75U, size)); }
  size_t Batch() const { return batch.value_or(Work() == LoadOptions::Work::kCall ? 1 : 100); }
};

// "" if the examples of so many streams and their messages under way take about a quarter of this
// machine's memory at most; else how much they take, and what takes less.
std::string TooMuchMemory(const LoadOptions& load, const SyntheticRowsOptions& rows,
                          size_t streams);

}  // namespace perceptrond::client
