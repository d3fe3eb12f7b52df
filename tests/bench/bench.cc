// Measures ours beside its references and prints how they compare. README.md says what each row is.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "tests/bench/benchmark.h"

namespace perceptrond::bench {
namespace {

bool Matches(const Figure& figure, const Options& options) {
  return absl::StrContains(figure.name, options.filter);
}

bool Matches(const Benchmark& benchmark, const Options& options) {
  return std::any_of(benchmark.figures.begin(), benchmark.figures.end(),
                     [&](const Figure& figure) { return Matches(figure, options); });
}

// Runs the benchmarks of one group, interleaved: each once, then each again.
void Run(std::vector<Benchmark> benchmarks, const Options& options, std::vector<Figure>& figures) {
  for (int rep = 0; rep < options.reps; ++rep) {
    for (Benchmark& benchmark : benchmarks) {
      if (!Matches(benchmark, options)) continue;
      if (isatty(STDERR_FILENO) != 0) {
        std::fprintf(stderr, "\r\033[K%d/%d %s", rep + 1, options.reps,
                     benchmark.figures[0].name.c_str());
      }
      benchmark.measure(rep, benchmark.figures);
    }
  }
  for (const Benchmark& benchmark : benchmarks) {
    for (const Figure& figure : benchmark.figures) {
      if (Matches(figure, options)) figures.push_back(figure);
    }
  }
}

// 0 of nothing.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string Number(double value) { return value == 0 ? "-" : absl::StrFormat("%.4g", value); }

std::string Table(const std::vector<Figure>& rows) {
  std::string text = absl::StrFormat("%-40s %10s %10s %10s %-10s %6s %6s %6s %6s %6s %8s  %s\n",
                                     "name", "ours", "reference", "null", "unit", "cpu ns",
                                     "server", "bytes", "ratio", "worst", "goal", "met");
  for (const Figure& row : rows) {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.values.size(); ++i)
      ratios.push_back(row.values[i] / row.references[i]);
    const auto [smallest, largest] = std::minmax_element(ratios.begin(), ratios.end());
    const bool is_floor = row.direction == Goal::kAtLeast;
    const double worst = is_floor ? *smallest : *largest;
    const bool met = is_floor ? worst >= row.goal : worst <= row.goal;
    absl::StrAppendFormat(&text, "%-40s %10s %10s %10s %-10s %6s %6s %6s %6.2f %6.2f %s %.2f  %s\n",
                          row.name, Number(Median(row.values)), Number(Median(row.references)),
                          Number(Median(row.nulls)), row.unit, Number(Median(row.costs)),
                          Number(Median(row.server_costs)), Number(row.bytes), Median(ratios),
                          worst, is_floor ? " >=" : " <=", row.goal, met ? "yes" : "no");
  }
  return text;
}

int Main(const Options& options) {
  std::vector<Figure> figures;
  Run(StreamBenchmarks(options), options, figures);
  Run({UnaryLatency(options)}, options, figures);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  std::fputs(Table(figures).c_str(), stdout);
  if (!figures.empty()) return 0;
  std::fputs("no row has such a name\n", stderr);
  return 2;
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::Options options;
  CLI::App app("perceptrond beside a server that learns nothing", "bench");
  app.add_option("--reps", options.reps, "Interleaved repetitions; medians are shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Of each measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--filter", options.filter, "Only rows whose name contains this");
  app.add_flag("--tiny", options.tiny, "Few examples: shows that it runs, and nothing else");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  // As the server has it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return perceptrond::bench::Main(options);
}
