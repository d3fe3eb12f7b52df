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
  double mistakes_asked = 0;
  // The time that is counted, and what it took beyond that to send what was overdue.
  double seconds = 0;
  LoadTally tally;

  // Examples, learned from or refused.
  uint64_t answered() const { return tally.examples + tally.refused; }
  double examples_per_second() const;
  // Of the examples that were learned from; 0 of none.
  double mistake_share() const;
  // With a rate: hardly anything was missing from it.
  bool kept_up() const;
  std::string Text() const;
  // One object.
  std::string Json() const;
};

}  // namespace perceptrond::client
