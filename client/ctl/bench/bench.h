// `perceptronctl bench`: its options, the model it loads, one run, and the report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
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
  // Dimension of the temporary model; with `named`, the number of names.
  uint32_t size = 1U << 20;
  bool dense = false;
  // Features by name, of frequent and rare names.
  bool named = false;
  // With `named`: bits of the temporary model's hashed space; absent: it has a named space.
  std::optional<int> hash_bits;
  // LearnOptions::compact.
  bool compact = false;
  double mistakes = 0;
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

// Threads: one.
class BenchModel {
 public:
  // Both arguments must outlive this.
  BenchModel(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}
  ~BenchModel() { Delete(); }
  BenchModel(const BenchModel&) = delete;
  BenchModel& operator=(const BenchModel&) = delete;

  // Determines the model's name and the shape of its examples, without creating anything.
  Outcome Find();
  // Creates the model if it is temporary.
  Outcome Create();
  // Deletes the model if it was created; prints an error if that fails.
  void Delete();

  // Valid after Find().
  const std::string& name() const { return name_; }
  const SyntheticRowsOptions& shape() const { return shape_; }

 private:
  Outcome ReadShape(const v1::Model& model);

  const Globals& globals_;
  const BenchOptions& options_;
  const Client client_;
  std::string name_;
  SyntheticRowsOptions shape_;
  bool created_ = false;
};

// A plain value.
struct BenchReport {
  // "learn", "predict" or "call".
  std::string work;
  std::string model;
  size_t streams = 1;
  size_t batch = 1;
  // Requested examples per second; 0: as many as the server accepts.
  double rate = 0;
  // Requested share of mistakes, 0 to 1.
  double requested_mistakes = 0;
  // The measured time, including the time after its end for overdue messages.
  double seconds = 0;
  LoadTally tally;

  // Answered examples, those with validation errors included.
  uint64_t answered() const { return tally.examples + tally.row_errors; }
  double examples_per_second() const;
  // Mistakes as a share of the learned examples; 0 without examples.
  double mistake_share() const;
  // At least 99 % of the requested rate was answered.
  bool kept_up() const;
  std::string Text() const;
  std::string Json() const;
};

// Runs a bench: a model, streams of load on it, and the report. Returns the exit code.
int RunBench(const Globals& globals, const BenchOptions& options);

}  // namespace perceptrond::client
