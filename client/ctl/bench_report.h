// What a load came to, for people and for programs.
#pragma once

#include <cstdint>
#include <string>

#include "client/load/load.h"

namespace perceptrond::client {

struct BenchReport {
  // "learn", "predict" or "call".
  std::string work;
  std::string model;
  size_t streams = 1;
  size_t batch = 1;
  // Examples a second that were to be sent; 0: as many as may be.
  double rate = 0;
  // The time that is counted.
  double seconds = 0;
  LoadTally tally;

  double examples_per_second() const;
  // With a rate: hardly anything of it was left out.
  bool kept_up() const;
  std::string Text() const;
  // One object.
  std::string Json() const;
};

}  // namespace perceptrond::client
