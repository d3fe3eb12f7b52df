// The result of a bench, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

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

}  // namespace perceptrond::client
