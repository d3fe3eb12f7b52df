#include "tests/bench/fleet/table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

namespace perceptrond::bench::fleet {
namespace {

// Fewer stale rows are too few to compare a rate with.
constexpr uint64_t kLeastStale = 30;

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

const char* Order(const FleetOptions& options) {
  if (!options.strict) return "relaxed";
  if (options.closed == Closed::kWait) return "strict, waits";
  return options.closed == Closed::kForward ? "strict" : "strict, waits unless erring";
}

// NaN where the law says nothing.
LawFigures LawOf(const SimulatedPoint& point, double stale_constant) {
  const FleetOptions o = WithMeasuredRate(point);
  if (o.replicas > 1 && o.window != 1)
    return FleetLaw(o, point.figures.ErrorRate(), stale_constant);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {kNone, kNone, kNone, kNone, kNone, kNone};
}

double WriterLoad(const SimulatedPoint& point) {
  return static_cast<double>(point.figures.forwarded) * point.options.service /
         point.figures.seconds;
}

class Deviations {
 public:
  void Add(double law, double simulated) {
    if (simulated > 0) values_.push_back(std::abs(law / simulated - 1));
  }
  void Print(const char* order, const char* what) {
    if (values_.empty()) return;
    std::sort(values_.begin(), values_.end());
    const auto at = [&](double q) {
      return 100 * values_[static_cast<size_t>(q * static_cast<double>(values_.size() - 1))];
    };
    std::printf("| %s | %s | %zu | %.1f | %.1f | %.0f |\n", order, what, values_.size(), at(0.5),
                at(0.9), at(1));
  }

 private:
  std::vector<double> values_;
};

}  // namespace

std::vector<SimulatedPoint> SimulateAll(const std::vector<FleetOptions>& runs) {
  std::vector<SimulatedPoint> points(runs.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (size_t run = next++; run < runs.size(); run = next++)
        points[run] = {runs[run], SimulateFleet(runs[run])};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return points;
}

FleetOptions WithMeasuredRate(const SimulatedPoint& point) {
  FleetOptions options = point.options;
  if (options.window > 0)
    options.rate = static_cast<double>(point.figures.rows) / point.figures.seconds;
  return options;
}

void PrintTable(const std::string& title, const std::vector<SimulatedPoint>& points,
                double stale_constant) {
  std::printf(
      "\n## %s\n\n"
      "Shares in %%; \"forwarded\" and \"copies err\" are shares of the rows at followers. "
      "Delays in ms. nan: "
      "no law.\n\n"
      "| order | replicas | rows/s | rows a message | replication | margin | noise | updates "
      "| appends | local | forwarded | law | stale an update | law | median delay | law | p99 | "
      "answer "
      "| progressive error | copies err | law | writer load |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      title.c_str());
  for (const SimulatedPoint& point : points) {
    const FleetOptions o = WithMeasuredRate(point);
    const FleetFigures& f = point.figures;
    const LawFigures law = LawOf(point, stale_constant);
    std::printf(
        "| %s | %zu | %.3g | %zu | %.3g | %.3g | %.3g | %llu | %llu | %.2f | %.2f | %.2f | "
        "%.3f | %.3f | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f | %.3f | %.2f |\n",
        Order(o), o.replicas, o.rate, o.message_rows, 1e3 * o.replication, o.rows.margin,
        100 * o.rows.noise, static_cast<unsigned long long>(f.updates),
        static_cast<unsigned long long>(f.commits), 100 - Percent(f.forwarded, f.rows),
        100 * f.Forwarded(), 100 * law.forwarded, f.StaleAnUpdate(), law.stale_an_update,
        1e3 * f.median_delay, 1e3 * law.median_delay, 1e3 * f.p99_delay, 1e3 * f.mean_answer,
        100 * f.ErrorRate(), 100 * f.CopyErrorRate(), 100 * law.copy_error_rate, WriterLoad(point));
  }
  std::fflush(stdout);
}

void PrintRun(const SimulatedPoint& point, double stale_constant) {
  const FleetFigures& f = point.figures;
  const LawFigures law = LawOf(point, stale_constant);
  const auto count = [](const char* name, uint64_t value) {
    std::printf("%-34s %llu\n", name, static_cast<unsigned long long>(value));
  };
  const auto value = [](const char* name, double simulated, double expected) {
    std::printf("%-34s %.4f   law %.4f\n", name, simulated, expected);
  };
  std::printf("%-34s %s\n", "order", Order(point.options));
  std::printf("%-34s %.4f\n", "seconds", f.seconds);
  count("rows", f.rows);
  std::printf("%-34s %.0f\n", "rows a second", static_cast<double>(f.rows) / f.seconds);
  count("rows at followers", f.follower_rows);
  count("updates", f.updates);
  count("appends", f.commits);
  count("forwarded rows", f.forwarded);
  count("  that a replica found to be wrong", f.called);
  count("  of those stale", f.stale);
  count("rows missed by a stale copy", f.missed);
  std::printf("%-34s %.4f\n", "evaluated locally, %", 100 - Percent(f.forwarded, f.rows));
  value("forwarded by followers, %", 100 * f.Forwarded(), 100 * law.forwarded);
  value("stale rows an update", f.StaleAnUpdate(), law.stale_an_update);
  value("median learning delay, ms", 1e3 * f.median_delay, 1e3 * law.median_delay);
  std::printf("%-34s %.4f\n", "p99 learning delay, ms", 1e3 * f.p99_delay);
  std::printf("%-34s %.4f\n", "mean answer at followers, ms", 1e3 * f.mean_answer);
  std::printf("%-34s %.4f\n", "progressive error, %", 100 * f.ErrorRate());
  value("error of the copies, %", 100 * f.CopyErrorRate(), 100 * law.copy_error_rate);
  value("load of the writer", WriterLoad(point), law.writer_load);
  if (f.least_margin > 0 && point.options.rows.drift_at == 0) {
    const double root = f.largest_norm / f.least_margin;
    std::printf("%-34s %llu of at most %.0f\n", "updates ever, separable rows",
                static_cast<unsigned long long>(f.updates_ever), root * root);
  }
}

void PrintLaw(const FleetOptions& options, double error_rate, double stale_constant) {
  const LawFigures law = FleetLaw(options, error_rate, stale_constant);
  std::printf("law for a progressive error of %.4f %%, %s\n", 100 * error_rate, Order(options));
  std::printf("%-34s %.4f\n", "forwarded by followers, %", 100 * law.forwarded);
  std::printf("%-34s %.4f\n", "stale rows an update", law.stale_an_update);
  std::printf("%-34s %.4f\n", "median learning delay, ms", 1e3 * law.median_delay);
  std::printf("%-34s %.4f\n", "error of the copies, %", 100 * law.copy_error_rate);
  std::printf("%-34s %.4f\n", "load of the writer", law.writer_load);
}

void PrintDeviations(const std::vector<SimulatedPoint>& points, double stale_constant) {
  std::printf(
      "\n## The law beside %zu runs\n\nstale an update = %.4f (R^3 e)^(1/4)\n\n"
      "| order | figure | runs | median deviation %% | 90th percentile | worst |\n"
      "|---|---|---|---|---|---|\n",
      points.size(), stale_constant);
  for (const bool strict : {true, false}) {
    Deviations forwarded;
    Deviations copies;
    Deviations delay;
    Deviations stale;
    for (const auto& [options, figures] : points) {
      if (options.strict != strict) continue;
      const LawFigures law = LawOf({options, figures}, stale_constant);
      forwarded.Add(law.forwarded, figures.Forwarded());
      copies.Add(law.copy_error_rate, figures.CopyErrorRate());
      delay.Add(law.median_delay, figures.median_delay);
      if (figures.stale >= kLeastStale) stale.Add(law.stale_an_update, figures.StaleAnUpdate());
    }
    const char* order = strict ? "strict" : "relaxed";
    forwarded.Print(order, "forwarded");
    copies.Print(order, "error of the copies");
    delay.Print(order, "median learning delay");
    stale.Print(order, "stale rows an update");
  }
  std::fflush(stdout);
}

}  // namespace perceptrond::bench::fleet
