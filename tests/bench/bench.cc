// Measures ours beside its references and prints how they compare. README.md says what each row is.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
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
