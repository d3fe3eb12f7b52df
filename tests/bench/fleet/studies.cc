#include "tests/bench/fleet/studies.h"

#include <algorithm>
#include <functional>
#include <string>

#include "tests/bench/fleet/table.h"

namespace perceptrond::bench::fleet {
namespace {

using Figure = std::function<double(const SimulatedPoint&)>;
using Expected = std::function<double(const LawFigures&)>;

// Enough rows for a few messages of each stream and for a while of virtual time, a quarter of them
// before the figures start.
FleetOptions Sized(FleetOptions options, bool tiny) {
  const double messages = 20 * static_cast<double>(options.message_rows * options.replicas);
  // Streams with a window send as fast as they can.
  const double rows = options.window > 0 ? std::clamp(100 * messages, 4e5, 2e7)
                                         : std::clamp(std::max(messages, options.rate), 4e5, 4e6);
  options.total_rows = tiny ? 4000 : static_cast<uint64_t>(rows);
  options.warm_up_rows = options.total_rows / 4;
  return options;
}

FleetOptions Base(double noise, bool strict) {
  FleetOptions options;
  options.replicas = 10;
  options.rows.noise = noise;
  options.strict = strict;
  return options;
}

// One series: the values of x, each of which is one run.
struct Sweep {
  std::string name;
  FleetOptions base;
  std::vector<double> xs;
  std::function<void(double x, FleetOptions*)> set;
  Figure figure;
  // None: no law is drawn.
  Expected law;
  // What is on the x axis, if that is not the value that is set.
  Figure x = nullptr;
  bool from_start = false;
};

Series Run(const std::string& title, const Sweep& sweep, bool tiny, double stale_constant) {
  std::vector<FleetOptions> runs;
  for (const double x : sweep.xs) {
    FleetOptions options = sweep.base;
    sweep.set(x, &options);
    runs.push_back(Sized(options, tiny));
    if (sweep.from_start) runs.back().warm_up_rows = 0;
  }
  if (tiny) runs.resize(std::min<size_t>(2, runs.size()));
  const std::vector<SimulatedPoint> points = SimulateAll(runs);
  PrintTable(title + ": " + sweep.name, points, stale_constant);
  Series series{sweep.name, {}, {}};
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = sweep.x ? sweep.x(points[i]) : sweep.xs[i];
    series.simulated.push_back({x, sweep.figure(points[i])});
    if (!sweep.law) continue;
    const LawFigures law =
        FleetLaw(points[i].options, points[i].figures.ErrorRate(), stale_constant);
    series.law.push_back({x, sweep.law(law)});
  }
  return series;
}

double ForwardedPercent(const SimulatedPoint& point) { return 100 * point.figures.Forwarded(); }
double ForwardedByLaw(const LawFigures& law) { return 100 * law.forwarded; }
double ErrorPercent(const SimulatedPoint& point) { return 100 * point.figures.ErrorRate(); }
double CopyErrorPercent(const SimulatedPoint& point) { return 100 * point.figures.CopyErrorRate(); }
double CopyErrorByLaw(const LawFigures& law) { return 100 * law.copy_error_rate; }

std::vector<Sweep> ByReplicas() {
  const std::vector<double> replicas = {2, 3, 5, 10, 30, 100, 300, 1000};
  const auto set = [](double x, FleetOptions* o) { o->replicas = static_cast<size_t>(x); };
  return {
      {"strict, 2.8 % errors", Base(0.01, true), replicas, set, ForwardedPercent, ForwardedByLaw},
      {"strict, 0.6 %", Base(0.002, true), replicas, set, ForwardedPercent, ForwardedByLaw},
      {"strict, 0.08 %", Base(0.00025, true), replicas, set, ForwardedPercent, ForwardedByLaw},
      {"relaxed, 2.7 %", Base(0.01, false), replicas, set, ForwardedPercent, ForwardedByLaw},
  };
}

std::vector<Sweep> ByErrorRate() {
  const std::vector<double> noises = {0.0003, 0.001, 0.003, 0.01, 0.03, 0.06, 0.1};
  const auto set = [](double x, FleetOptions* o) { o->rows.noise = x; };
  std::vector<Sweep> sweeps;
  for (const size_t rows : {1000, 100, 10}) {
    FleetOptions base = Base(0, true);
    base.message_rows = rows;
    sweeps.push_back({"strict, " + std::to_string(rows) + " a message", base, noises, set,
                      ForwardedPercent, ForwardedByLaw, ErrorPercent});
  }
  sweeps.push_back({"relaxed, 100 a message", Base(0, false), noises, set, ForwardedPercent,
                    ForwardedByLaw, ErrorPercent});
  return sweeps;
}

std::vector<Sweep> ByRate() {
  const std::vector<double> rates = {1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6};
  const auto set = [](double x, FleetOptions* o) { o->rate = x; };
  std::vector<Sweep> sweeps;
  for (const double replication : {10e-3, 1e-3}) {
    FleetOptions base = Base(0.00025, true);
    base.replication = replication;
    sweeps.push_back({replication > 5e-3 ? "strict, delay 10 ms" : "strict, delay 1 ms", base,
                      rates, set, ForwardedPercent, ForwardedByLaw});
  }
  sweeps.push_back(
      {"relaxed, delay 1 ms", Base(0.00025, false), rates, set, ForwardedPercent, ForwardedByLaw});
  return sweeps;
}

std::vector<Sweep> ByDelay() {
  const std::vector<double> delays = {0.3, 1, 3, 10, 30, 100, 300};
  const auto set = [](double x, FleetOptions* o) {
    o->replicas = 100;
    o->replication = 1e-3 * x;
  };
  return {{"relaxed: copies", Base(0.002, false), delays, set, CopyErrorPercent, CopyErrorByLaw},
          {"strict: copies", Base(0.002, true), delays, set, CopyErrorPercent, CopyErrorByLaw},
          {"strict: progressive", Base(0.002, true), delays, set, ErrorPercent, nullptr}};
}

// On separable rows; the figures leave nothing out.
std::vector<Sweep> ByMargin() {
  const std::vector<double> margins = {0.2, 0.1, 0.05, 0.02, 0.01};
  const auto updates = [](const SimulatedPoint& point) {
    return static_cast<double>(point.figures.updates_ever);
  };
  std::vector<Sweep> sweeps;
  for (const size_t replicas : {1, 1000}) {
    for (const bool strict : {true, false}) {
      if (replicas == 1 && !strict) continue;
      FleetOptions base = Base(0, strict);
      base.replicas = replicas;
      base.rate = 1e6;
      const std::string order = replicas == 1 ? "" : strict ? ", strict" : ", relaxed";
      const std::string name =
          std::to_string(replicas) + (replicas == 1 ? " replica" : " replicas") + order;
      sweeps.push_back({name, base, margins, [](double x, FleetOptions* o) { o->rows.margin = x; },
                        updates, nullptr, nullptr, true});
    }
  }
  return sweeps;
}

// Clients send as fast as they get answers, ten messages ahead.
std::vector<Sweep> ByReplicasWithWindows() {
  const std::vector<double> replicas = {1, 2, 3, 5, 10, 30, 100};
  const auto set = [](double x, FleetOptions* o) { o->replicas = static_cast<size_t>(x); };
  const auto rate = [](const SimulatedPoint& point) { return WithMeasuredRate(point).rate; };
  std::vector<Sweep> sweeps;
  const auto add = [&](const char* name, double noise, bool strict, Closed closed) {
    FleetOptions base = Base(noise, strict);
    base.closed = closed;
    base.window = 10;
    sweeps.push_back({name, base, replicas, set, rate, nullptr});
  };
  add("separable, relaxed", 0, false, Closed::kForward);
  add("separable, strict, waits", 0, true, Closed::kWaitUnlessErring);
  add("separable, strict", 0, true, Closed::kForward);
  add("0.08 %, relaxed", 0.00025, false, Closed::kForward);
  add("0.08 %, strict, waits", 0.00025, true, Closed::kWaitUnlessErring);
  add("0.08 %, strict", 0.00025, true, Closed::kForward);
  return sweeps;
}

Panel Draw(Panel panel, const std::string& title, const std::vector<Sweep>& sweeps, bool tiny,
           double stale_constant) {
  for (const Sweep& sweep : sweeps) panel.series.push_back(Run(title, sweep, tiny, stale_constant));
  return panel;
}

}  // namespace

double FitOnGrid(bool tiny) {
  std::vector<FleetOptions> runs;
  for (const double margin : {0.1, 0.02})
    for (const double noise : {0.0002, 0.002, 0.02})
      for (const size_t replicas : {3, 30, 300})
        for (const double rate : {1e4, 1e5, 1e6})
          for (const size_t rows : {10, 100})
            for (const double replication : {1e-3, 10e-3})
              for (const bool strict : {true, false}) {
                FleetOptions options = Base(noise, strict);
                options.rows.margin = margin;
                options.replicas = replicas;
                options.rate = rate;
                options.message_rows = rows;
                options.replication = replication;
                runs.push_back(Sized(options, tiny));
              }
  // Clients that are messages ahead, whose rate follows.
  for (const double noise : {0.0002, 0.002, 0.02})
    for (const size_t replicas : {3, 30})
      for (const size_t rows : {10, 100}) {
        FleetOptions options = Base(noise, true);
        options.replicas = replicas;
        options.message_rows = rows;
        options.window = 10;
        runs.push_back(Sized(options, tiny));
      }
  if (tiny) runs.resize(8);
  std::vector<SimulatedPoint> points = SimulateAll(runs);
  for (SimulatedPoint& point : points) point.options = WithMeasuredRate(point);
  const double stale_constant = FitStaleConstant(points);
  PrintDeviations(points, stale_constant);
  return stale_constant;
}

std::vector<Panel> RunStudies(bool tiny, double stale_constant) {
  std::vector<Panel> panels;
  panels.push_back(Draw({"replicas that share 100,000 rows/s",
                         "forwarded, %",
                         {},
                         {},
                         {},
                         {"100 rows a message,", "one stream a replica"}},
                        "Replicas", ByReplicas(), tiny, stale_constant));
  panels.push_back(
      Draw({"progressive error, %", "forwarded, %", {}, {}, {}, {"10 replicas, 100,000 rows/s"}},
           "Error rate", ByErrorRate(), tiny, stale_constant));
  panels.push_back(
      Draw({"replicas", "rows/s", {}, {}, {}, {"clients 10 messages ahead,", "100 rows a message"}},
           "Pipelined clients", ByReplicasWithWindows(), tiny, stale_constant));
  panels.push_back(Draw({"rows/s of all streams",
                         "forwarded, %",
                         {},
                         {},
                         {},
                         {"10 replicas, 0.08 % errors,", "100 rows a message"}},
                        "Rate", ByRate(), tiny, stale_constant));
  panels.push_back(Draw({"replication delay, ms",
                         "error, %",
                         {},
                         {},
                         {},
                         {"100 replicas, 100,000 rows/s,", "0.2 % wrong labels"}},
                        "Replication delay", ByDelay(), tiny, stale_constant));
  Panel margins =
      Draw({"margin", "updates until learned", {}, {}, {}, {"1,000,000 separable rows/s"}},
           "Margin", ByMargin(), tiny, stale_constant);
  for (const client::Point& point : margins.series[0].simulated)
    margins.bound.push_back({point.x, 1 / (point.x * point.x)});
  margins.bound_name = "(R / margin)²";
  panels.push_back(margins);
  return panels;
}

}  // namespace perceptrond::bench::fleet
