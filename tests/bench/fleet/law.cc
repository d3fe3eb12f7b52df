#include "tests/bench/fleet/law.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace perceptrond::bench::fleet {
namespace {

constexpr int kIterations = 200;
constexpr int kIntegrationSteps = 400;
constexpr double kMostMessages = 1e9;
constexpr double kProxyWindow = 1000;
constexpr double kMostLoad = 0.999;
// Rows of either kind that a point must have to be fitted.
constexpr uint64_t kLeastCount = 30;
// Above it, models are proxied whole now and then.
constexpr double kLargestFittedErrorRate = 0.08;

double SomeMistake(double e, double m) { return -std::expm1(m * std::log1p(-e)); }

// The mean number of rows before the first mistake of a message that holds one.
double RowsBefore(double e, double m) {
  const double none = std::pow(1 - e, m);
  return none == 1 ? 0 : (1 - e) / e - m * none / (1 - none);
}

// The probability that the last 1000 rows exceed a rate of updates, by the normal distribution.
double Exceeds(double e, double limit) {
  const double deviation = std::sqrt(std::max(1e-12, e * (1 - e)) / kProxyWindow);
  return 0.5 * std::erfc((limit - e) / deviation / std::numbers::sqrt2);
}

// The part of its time that commits run.
double CommitLoad(double batches, double commit) {
  const double x = batches * commit;
  return x / (x + std::exp(-x));
}

// An update that arrives during a commit waits for its end, half of one in the mean.
double MeanCommit(double batches, double commit) {
  return commit * (1 + CommitLoad(batches, commit) / 2);
}
double MedianCommit(double batches, double commit) {
  return commit * (1 + std::max(0.0, 1 - 0.5 / std::max(0.5, CommitLoad(batches, commit))));
}

// Times and rates of the formulas of the header.
struct Closing {
  double messages;
  double updating;
  double batches;
  double answer;
  double update;
  double stale_an_update;
};

// The integrand of I without the density of the age.
double OpenAtAge(const Closing& c, double age) {
  if (age < c.answer) return 0;
  return age < c.update ? (1 - c.updating) * std::exp(-c.batches * (c.update - age)) : 1;
}

double ProbabilityOpen(const Closing& c) {
  const double from = c.answer;
  const double to = std::max(c.answer, c.update);
  double sum = std::exp(-c.messages * to);
  const double step = (to - from) / kIntegrationSteps;
  for (int i = 0; i < kIntegrationSteps; ++i) {
    const double age = from + (i + 0.5) * step;
    sum += step * c.messages * std::exp(-c.messages * age) * OpenAtAge(c, age);
  }
  return sum;
}

double MessagesWhileClosed(const Closing& c, bool regular) {
  const double open = regular ? OpenAtAge(c, 1 / c.messages) : ProbabilityOpen(c);
  const double first =
      regular ? std::floor(c.messages * c.update) : c.messages * std::max(0.0, c.update - c.answer);
  return std::min(kMostMessages, 1 / std::max(open, 1e-12) - 1 + first / (1 + c.stale_an_update));
}

// The probability that Beta(30 q, 30 (1 - q)) is above an eighth: see Closed::kWaitUnlessErring.
double MostlyErring(double q) {
  constexpr double kErring = 1.0 / 8;
  // 1 + 2 / w - 2 for a moving average that gives the latest message the weight w = 1/16.
  constexpr double kSum = 30;
  if (q <= 0 || q >= 1) return q;
  const double a = kSum * q;
  const double b = kSum * (1 - q);
  const double step = (1 - kErring) / kIntegrationSteps;
  double sum = 0;
  for (int i = 0; i < kIntegrationSteps; ++i) {
    const double x = kErring + (i + 0.5) * step;
    sum += step * std::exp((a - 1) * std::log(x) + (b - 1) * std::log1p(-x));
  }
  return std::min(1.0, sum * std::exp(std::lgamma(kSum) - std::lgamma(a) - std::lgamma(b)));
}

// The part of the time that closed streams forward their messages.
double ForwardingPart(Closed closed, double updating) {
  if (closed == Closed::kWaitUnlessErring) return MostlyErring(updating);
  return closed == Closed::kForward ? 1 : 0;
}

// (R^3 e)^(1/4) of the header.
double Staleness(const FleetOptions& o, double e, double update_time) {
  // In relaxed order the rows of a message do not wait for each other's updates either.
  const double same_message = o.strict ? 0 : (static_cast<double>(o.message_rows) - 1) / 2;
  const double rows = o.rate * update_time + same_message;
  return std::pow(rows * rows * rows * e, 0.25);
}

// The part of the rows that no copy is asked about first: the writer's own, and those of models that are
// proxied whole or, in strict order, of streams that wait.
double WriterPart(const FleetOptions& o, double forwarded, double proxied) {
  const double own = 1 / static_cast<double>(o.replicas);
  return own + (1 - own) * (o.strict ? forwarded : proxied);
}

}  // namespace

LawFigures FleetLaw(const FleetOptions& o, double e, double stale_constant) {
  const auto m = static_cast<double>(o.message_rows);
  const auto streams = static_cast<double>(o.replicas * o.streams_per_replica);
  const double followers = 1 - 1 / static_cast<double>(o.replicas);
  const double updating = SomeMistake(e, m);
  const double batches = o.rate / m * updating;
  const double proxied = Exceeds(e, o.proxy_above);
  const double commit = MeanCommit(batches, o.commit);
  LawFigures law;
  law.forwarded = e;
  // The queue at the writer, the staleness and the part that is forwarded depend on each other.
  for (int i = 0; i < kIterations; ++i) {
    law.writer_load = law.forwarded * followers * o.rate * o.service;
    const double load = std::min(law.writer_load, kMostLoad);
    // Of a queue M/D/1 of messages.
    const double rows = o.strict ? m : std::max(1.0, m * e);
    const double service = rows * o.service * (1 + load / (2 * (1 - load)));
    const double update = o.forward + service + commit + std::max(o.forward, o.replication);
    const double stale = stale_constant * Staleness(o, e, update);
    law.stale_an_update = stale;
    law.copy_error_rate =
        std::min(0.5, e * (1 + stale) / (1 + WriterPart(o, law.forwarded, proxied) * stale));
    law.median_delay =
        o.replicas == 1 ? 0 : o.forward + service + MedianCommit(batches, o.commit) + o.replication;
    double next = law.copy_error_rate;
    if (o.strict) {
      const double q = SomeMistake(law.copy_error_rate, m);
      const Closing closing{o.rate / m / streams,    updating, batches * (1 - 1 / streams),
                            2 * o.forward + service, update,   stale};
      const double k = o.window > 1 ? kMostMessages : MessagesWhileClosed(closing, o.regular);
      const double rest = m - RowsBefore(law.copy_error_rate, m);
      const double part = ForwardingPart(o.closed, updating);
      law.messages_while_closed = part * k;
      next = (1 - part) * q * rest / m + part * q * (rest + m * k) / (m * (1 + q * k));
    }
    law.forwarded = (law.forwarded + proxied + (1 - proxied) * next) / 2;
  }
  return law;
}

double FitStaleConstant(const std::vector<SimulatedPoint>& points) {
  double sum = 0;
  int count = 0;
  const auto add = [&](double stale, double with_constant_one) {
    sum += std::log(stale / with_constant_one);
    ++count;
  };
  for (const SimulatedPoint& point : points) {
    const FleetFigures& figures = point.figures;
    const double e = figures.ErrorRate();
    if (e > kLargestFittedErrorRate) continue;
    const double unit = FleetLaw(point.options, e, 1).stale_an_update;
    if (figures.stale >= kLeastCount && figures.called > figures.stale)
      add(figures.StaleAnUpdate(), unit);
    // The same from the copies' errors, e' = e (1 + X) / (1 + w X).
    const double ratio = figures.CopyErrorRate() / e;
    const double part = WriterPart(point.options, figures.Forwarded(), 0);
    if (figures.missed >= kLeastCount && ratio > 1.02 && part * ratio < 0.97)
      add((ratio - 1) / (1 - part * ratio), unit);
  }
  return count == 0 ? kStaleConstant : std::exp(sum / count);
}

}  // namespace perceptrond::bench::fleet
