// One stream as a case: what is sent, and what a server does with it; measured at the real server
// beside its floor and the null server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "perceptron/v1/model.pb.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/floor.h"
#include "tests/bench/messages.h"

namespace perceptrond::bench {

enum class Work {
  // Learns rows that cause no mistake any more.
  kLearn,
  // Learns rows of which a tenth always are mistakes; these are durable.
  kErring,
  // Learns rows that a new model sees for the first time.
  kFirstPass,
  kPredict,
};

struct StreamCase {
  std::string name;
  Goal direction = Goal::kAtLeast;
  // Of the rate, by the floor.
  double goal = 1;
  Work work = Work::kLearn;
  Form form = Form::kPacked;
  // Rows a message.
  size_t size = 100;
  // ZipfRows instead of SparseRows: for what is sent by name, and what is compared with it.
  bool words = false;
  // A named space instead of a hashed one of 2^bits weights.
  bool named_space = false;
  uint32_t bits = 20;

  Figure figure() const { return {name, "examples/s", direction, goal}; }
};

// A model with a named space or a hashed one of 2^bits weights. For texts a text space of single
// words, by presence, with their norm kept: its features are those of a hashed space that is sent the
// words by name.
::perceptron::v1::Model ModelFor(Form form, bool named_space, uint32_t bits);

// Examples a second.
struct StreamRates {
  double ours = 0;
  double floor = 0;
  double null = 0;
  // Of ours: processor nanoseconds an example, and the server's part.
  double cost = 0;
  double server_cost = 0;
  double bytes = 0;
  // Of kFirstPass: ours of the second pass.
  double second_pass = 0;

  void AddTo(Figure& figure) const;
};

// Makes its rows and its model when first measured.
class StreamRun {
 public:
  // `options` must outlive it.
  StreamRun(StreamCase stream, const Options& options);
  ~StreamRun();

  const StreamCase& stream() const { return case_; }
  StreamRates Measure(int rep);

 private:
  struct State;

  void Prepare();
  Rows MakeRows() const;
  void CreateModel(const std::string& id) const;
  // Processor seconds an example of plain work beside which ours made `mistakes`, in `commits`.
  double Extra(const StreamOutcome& ours, uint64_t commits) const;
  // Ours, and the pass after it where there is one.
  StreamCost MeasureOurs(double& second_pass, uint64_t& commits);
  // A figure of another stream than the one that is named would mislead.
  void CheckMistakes(const StreamOutcome& outcome) const;

  const StreamCase case_;
  const Options& options_;
  std::unique_ptr<State> state_;
};

// The case as a row of its own.
Benchmark StreamBenchmark(const StreamCase& stream, const Options& options);

}  // namespace perceptrond::bench
