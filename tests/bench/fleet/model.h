// The protocol of a fleet of replicas, of which one is the model's writer, simulated in virtual time.
//
// Each replica evaluates the rows of its streams on its copy of the writer's weights. A row that calls
// for an update, a mistake, is forwarded to the writer, which evaluates it again on the newest weights
// and updates if it still is a mistake. In strict order the rows after it are forwarded as well, and
// so are whole messages until the stream's forwarded rows are answered and the copy has reached the
// revision after them, the stream's floor.
//
// Not simulated: lost messages, a change of writer, replicas that are slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/bench/fleet/row_source.h"

namespace perceptrond::bench::fleet {

// What is done with messages of a stream in strict order while its replica may not evaluate them.
enum class Closed {
  kForward,
  // They are kept at the replica until it may evaluate them. A row that calls for an update is still
  // forwarded with those after it.
  kWait,
  // The same, unless an eighth of the stream's latest messages had updates: then they are forwarded, as
  // servers do (server/fleet/stream_progress.h).
  kWaitUnlessErring,
};

// Times are in seconds, rates in one a second.
struct FleetOptions {
  RowOptions rows;
  size_t replicas = 3;
  size_t streams_per_replica = 1;
  // Rows of all streams.
  double rate = 100'000;
  size_t message_rows = 100;
  // Rows of a stream are evaluated in order, each on the outcome of the rows before it. Else relaxed.
  bool strict = true;
  Closed closed = Closed::kWaitUnlessErring;
  // Messages of a stream are equally far apart. Else they are a Poisson process.
  bool regular = false;
  // Unanswered messages of a stream: it sends another when one is answered, and `rate` is not used.
  // 0: messages arrive at `rate`.
  size_t window = 0;
  // From the answer to a message of a window until the next message arrives.
  double client = 0.2e-3;
  // Of a replica for a row; counts only with a window.
  double evaluation = 1e-6;
  // One way between a replica and the writer.
  double forward = 0.2e-3;
  // From the end of a commit until a replica has applied it: the median, and the standard deviation of
  // its logarithm.
  double replication = 1e-3;
  double jitter = 0;
  double commit = 0.67e-3;
  // Of the writer for each forwarded row.
  double service = 1e-6;
  // Share of updates in the last 1000 rows above which all rows are forwarded. Servers do not look at it.
  double proxy_above = 1;
  uint64_t total_rows = 300'000;
  // Rows at the start that the figures leave out, but for updates_ever.
  uint64_t warm_up_rows = 0;
};

struct FleetFigures {
  double seconds = 0;
  uint64_t rows = 0;
  // Rows at replicas other than the writer; the other counts of rows are parts of them.
  uint64_t follower_rows = 0;
  uint64_t forwarded = 0;
  // Forwarded rows that the replica's copy had found to call for an update.
  uint64_t called = 0;
  // Those that were no mistake on the writer's newest weights.
  uint64_t stale = 0;
  // Rows that were right on the copy and not on the newest weights, and were not forwarded.
  uint64_t missed = 0;
  // Rows that are mistakes on the copy, whether or not the copy was asked: the error of predictions.
  uint64_t copy_mistakes = 0;
  // A row is answered wrongly exactly if it updates, so this is the progressive error, too.
  uint64_t updates = 0;
  uint64_t updates_ever = 0;
  uint64_t commits = 0;
  // From the arrival of a row that updated until the median replica had the update.
  double median_delay = 0;
  double p99_delay = 0;
  // From the arrival of a row at a follower until it is answered, the mean.
  double mean_answer = 0;
  // Of all rows drawn.
  double least_margin = 0;
  double largest_norm = 0;
  // The weights at the end, and their mean over all rows.
  std::vector<float> newest;
  std::vector<float> mean;

  double Forwarded() const;
  double ErrorRate() const;
  double CopyErrorRate() const;
  double StaleAnUpdate() const;
};

FleetFigures SimulateFleet(const FleetOptions& options);

}  // namespace perceptrond::bench::fleet
