// Simulates a fleet of 1 to 1000 replicas of one model and compares it with a law, with averaging of
// weights, and with models on one replica each: tables on standard output, and a picture.
//   fleet_simulation [--svg FILE] [--tiny]
// One run, of three replicas by default, beside the law:
//   fleet_simulation --run --rate 100000 --message-rows 100 --replication-ms 1 --regular
// What the law expects of a real run with these delays, whose progressive error was measured:
//   fleet_simulation --run --rate 100000 --message-rows 100 --replication-ms 1 --regular --error-rate 0.006
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/fleet/checks.h"
#include "tests/bench/fleet/comparison.h"
#include "tests/bench/fleet/studies.h"
#include "tests/bench/fleet/table.h"

namespace perceptrond::bench::fleet {
namespace {

struct Settings {
  bool run = false;
  bool tiny = false;
  std::string svg;
  // Negative: simulate.
  double error_rate = -1;
  double stale_constant = kStaleConstant;
  bool relaxed = false;
  double client_ms = 0.2;
  double evaluation_us = 1;
  double forward_ms = 0.2;
  double replication_ms = 1;
  double commit_ms = 0.67;
  double service_us = 1;
  FleetOptions fleet;
};

void AddOptions(CLI::App& app, Settings& settings) {
  FleetOptions& fleet = settings.fleet;
  app.add_option("--svg", settings.svg, "Where the picture goes");
  app.add_flag("--tiny", settings.tiny, "Few short runs: shows that it runs, and nothing else");
  app.add_flag("--run", settings.run, "One run of the options below");
  app.add_option("--error-rate", settings.error_rate,
                 "Progressive error of a real run, of which the law is printed; 0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--stale-constant", settings.stale_constant, "Of the law");
  app.add_option("--replicas", fleet.replicas, "One of them is the writer")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--streams", fleet.streams_per_replica, "Streams of each replica")
      ->check(CLI::PositiveNumber);
  app.add_option("--rate", fleet.rate, "Rows a second of all streams")->check(CLI::PositiveNumber);
  app.add_option("--message-rows", fleet.message_rows)->check(CLI::PositiveNumber);
  app.add_flag("--relaxed", settings.relaxed, "Relaxed order; else strict");
  app.add_option("--closed", fleet.closed,
                 "Messages of a closed stream: forward, wait, wait-unless-erring")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Closed>{{"forward", Closed::kForward},
                                        {"wait", Closed::kWait},
                                        {"wait-unless-erring", Closed::kWaitUnlessErring}}));
  app.add_flag("--regular", fleet.regular,
               "Messages are equally far apart; else a Poisson process");
  app.add_option("--window", fleet.window,
                 "Unanswered messages of a stream, which replaces --rate; 0: messages at a rate");
  app.add_option("--client-ms", settings.client_ms,
                 "With a window: from an answer until the next message arrives")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--evaluation-us", settings.evaluation_us, "With a window: of a replica for a row")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--forward-ms", settings.forward_ms, "One way between replica and writer")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--replication-ms", settings.replication_ms, "From commit to a replica's copy")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--jitter", fleet.jitter, "Standard deviation of the logarithm of that delay")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--commit-ms", settings.commit_ms, "Duration of a commit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--service-us", settings.service_us, "Of the writer for a forwarded row")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--proxy-above", fleet.proxy_above,
                 "Share of updates in the last 1000 rows above which all rows are forwarded")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--dimension", fleet.rows.dimension)->check(CLI::Range(2, 100'000));
  app.add_option("--margin", fleet.rows.margin, "Of the separator, for rows of norm 1")
      ->check(CLI::Range(0.0, 0.9));
  app.add_option("--noise", fleet.rows.noise, "Share of wrong labels")->check(CLI::Range(0.0, 0.5));
  app.add_option("--drift-at", fleet.rows.drift_at, "Row from which another separator labels");
  app.add_option("--seed", fleet.rows.seed);
  app.add_option("--rows", fleet.total_rows)->check(CLI::PositiveNumber);
  app.add_option("--warm-up-rows", fleet.warm_up_rows, "Rows that the figures leave out");
}

int RunOne(Settings& settings) {
  FleetOptions& fleet = settings.fleet;
  fleet.strict = !settings.relaxed;
  fleet.client = 1e-3 * settings.client_ms;
  fleet.evaluation = 1e-6 * settings.evaluation_us;
  fleet.forward = 1e-3 * settings.forward_ms;
  fleet.replication = 1e-3 * settings.replication_ms;
  fleet.commit = 1e-3 * settings.commit_ms;
  fleet.service = 1e-6 * settings.service_us;
  if (settings.error_rate >= 0) {
    PrintLaw(fleet, settings.error_rate, settings.stale_constant);
  } else {
    PrintRun({fleet, SimulateFleet(fleet)}, settings.stale_constant);
  }
  return 0;
}

int RunAll(const Settings& settings) {
  const double stale_constant = FitOnGrid(settings.tiny);
  std::vector<Panel> panels = RunStudies(settings.tiny, stale_constant);
  panels.push_back(CompareWithMixing(settings.tiny));
  CompareWithSharding();
  if (settings.svg.empty()) return 0;
  std::ofstream file(settings.svg);
  file << DrawPanels(panels,
                     "100 features. Forwarding 0.2 ms, commit 0.67 ms, replication 1 ms, 1 µs a "
                     "row at the writer");
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "cannot write %s\n", settings.svg.c_str());
  return 1;
}

int Main(Settings& settings) {
  if (!CheckFleet()) return 1;
  return settings.run ? RunOne(settings) : RunAll(settings);
}

}  // namespace
}  // namespace perceptrond::bench::fleet

int main(int argc, char** argv) {
  perceptrond::bench::fleet::Settings settings;
  CLI::App app("A simulated fleet of replicas", "fleet_simulation");
  AddOptions(app, settings);
  CLI11_PARSE(app, argc, argv);
  return perceptrond::bench::fleet::Main(settings);
}
