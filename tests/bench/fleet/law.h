// What a fleet's figures are expected to be, from its error rate, without simulating it.
//
// A message of m rows of a stream that gets l messages a second holds a mistake with probability
// q = 1 - (1 - e')^m, where e' is the error rate of the replica's copy. In strict order the rows before
// that mistake, B, are evaluated by the replica; the others are forwarded, and so are the K messages
// that arrive before the stream opens again:
//   forwarded = q (m - B + m K) / (m (1 + q K))
// A message finds a closed stream open with probability I, if the last message before it was answered
// and the copy has the last update before that:
//   I = integral over a > A of l exp(-l a) (1 - q) exp(-b (D - a)), the last two factors if a < D
//   K = 1 / I - 1 + l (D - A) / (1 + X)
// with a the age of the last message, A the time to the writer and back, D the time from forwarding a
// row until its update is at the replica, b the updating messages a second of the other streams, X the stale
// rows an update. With D = A this is the busy period of a queue M/D/infinity: K = exp(l A) - 1. A client that
// is always some messages ahead keeps a closed stream closed: all is forwarded.
// If closed streams wait, K = 0. If they wait unless an eighth of their latest messages had updates, the moving
// average of these is above an eighth about as often as Beta(30 q, 30 (1 - q)), which has its mean and
// variance; the two kinds of time have their own forwarded parts.
// In relaxed order: forwarded = e'. Above the error rate at which models are proxied whole, all rows are forwarded.
//
// Staleness has one fitted constant. With e the part of the rows that update, R the rows of all streams
// that arrive in D, and w the part of the rows that the writer evaluates first:
//   X = c (R^3 e)^(1/4)            stale rows an update that a replica called for
//   e' = e (1 + X) / (1 + w X)     so that the updates of all rows are e
// The exponents are rounded from a fit.
#pragma once

#include <vector>

#include "tests/bench/fleet/model.h"

namespace perceptrond::bench::fleet {

// The c above, as fitted by fleet_simulation.
inline constexpr double kStaleConstant = 0.016;

struct LawFigures {
  // Parts of the rows at replicas other than the writer.
  double forwarded = 0;
  double copy_error_rate = 0;
  // X above.
  double stale_an_update = 0;
  // K above.
  double messages_while_closed = 0;
  // Seconds.
  double median_delay = 0;
  // The part of its time that the writer serves forwarded rows; at 1 it is saturated.
  double writer_load = 0;
};

// Of a fleet in which this part of the rows updates. `rows`, `jitter` and the numbers of rows of the
// options are not used.
LawFigures FleetLaw(const FleetOptions& options, double error_rate,
                    double stale_constant = kStaleConstant);

struct SimulatedPoint {
  FleetOptions options;
  FleetFigures figures;
};

// The constant of which the stale rows and the copies' errors deviate least, in squares of logarithms.
double FitStaleConstant(const std::vector<SimulatedPoint>& points);

}  // namespace perceptrond::bench::fleet
