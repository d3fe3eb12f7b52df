// The floor of a stream: the rate that the null server would have if it also did what the work
// itself takes, as plainly as it can be done.
//
//   floor = null rate * c / (c + extra)
//
// c: processor time an example of client and null server together. extra: that of the plain loop,
// which finds weights by the numbers of a stream's table in an array, of one hash lookup for each
// name sent, and of a sequential writer of the updates where they are durable. All are measured in
// the same repetition, on the same rows.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/bench/load.h"
#include "tests/bench/rows.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {

// A stream and the processor time that it took of client and server together.
struct StreamCost {
  StreamOutcome outcome;
  double processor_seconds = 0;
  // The server's part.
  double server_seconds = 0;

  double seconds_an_example() const {
    return processor_seconds / static_cast<double>(outcome.examples);
  }
};

StreamCost MeasureStream(Server server, Messages& messages, const StreamOptions& options);

// Plain work on the examples of a stream. Each method returns processor seconds an example, of this
// thread.
class PlainWork {
 public:
  // A weight for each index below `weights`, or with a table for each of its entries. `names` are
  // those that the rows' messages spell out.
  PlainWork(const Rows& rows, uint32_t weights, std::vector<std::string> names,
            std::vector<uint32_t> table = {});

  // Evaluates the rows, and learns from mistakes, for at least `seconds`. From weights that were
  // learned.
  double Loop(double seconds);
  // Looks up each name in a table of all, for at least `seconds`.
  double Lookups(double seconds);

 private:
  // The mistakes.
  size_t Pass();

  const Rows rows_;
  const std::vector<std::string> names_;
  const std::vector<uint32_t> table_;
  std::vector<float> weights_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

// Processor seconds an update of a writer that appends `updates` updates of `bytes` bytes each to a
// file in `commits` equal parts, each followed by fdatasync.
double WriteLog(const std::string& directory, uint64_t updates, size_t bytes, uint64_t commits);

inline double Floor(const StreamCost& null, double extra) {
  const double cost = null.seconds_an_example();
  return null.outcome.rate() * cost / (cost + extra);
}

}  // namespace perceptrond::bench
