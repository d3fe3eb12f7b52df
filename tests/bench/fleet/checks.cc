#include "tests/bench/fleet/checks.h"

#include <cstdio>
#include <string>

#include "tests/bench/fleet/mixing.h"
#include "tests/bench/fleet/model.h"
#include "tests/bench/fleet/writer.h"

namespace perceptrond::bench::fleet {
namespace {

FleetOptions SmallRun() {
  FleetOptions options;
  options.rows.dimension = 30;
  options.rows.noise = 0.02;
  options.total_rows = 20'000;
  options.message_rows = 20;
  return options;
}

FleetOptions WithoutDelays() {
  FleetOptions options = SmallRun();
  options.forward = options.replication = options.commit = options.service = 0;
  return options;
}

uint64_t UpdatesOfPlainRun(const FleetOptions& options) {
  RowSource source(options.rows);
  WeightsHistory weights(source.stride());
  std::vector<float> row;
  for (uint64_t i = 0; i < options.total_rows; ++i) {
    source.Draw(1, &row);
    weights.Learn(row.data());
    weights.DropBefore(weights.revision());
  }
  return weights.revision();
}

class Checks {
 public:
  bool passed() const { return passed_; }

  void Expect(bool condition, const std::string& what) {
    if (condition) return;
    std::fprintf(stderr, "check failed: %s\n", what.c_str());
    passed_ = false;
  }

  // Its updates are those of one perceptron that gets the same rows.
  void ExpectPlain(const FleetOptions& options, const std::string& what) {
    const uint64_t plain = UpdatesOfPlainRun(options);
    const uint64_t updates = SimulateFleet(options).updates_ever;
    Expect(updates == plain,
           what + ": " + std::to_string(updates) + " updates, not " + std::to_string(plain));
  }

 private:
  bool passed_ = true;
};

void CheckPlainRuns(Checks& checks) {
  FleetOptions one = SmallRun();
  one.replicas = 1;
  checks.ExpectPlain(one, "one replica");
  for (const double proxy_above : {0.0, 0.1, 1.0}) {
    FleetOptions options = WithoutDelays();
    options.proxy_above = proxy_above;
    for (const Closed closed : {Closed::kForward, Closed::kWait, Closed::kWaitUnlessErring}) {
      options.closed = closed;
      checks.ExpectPlain(options, "three replicas without delays, strict");
    }
    options.strict = false;
    options.message_rows = 1;
    checks.ExpectPlain(options, "three replicas without delays, relaxed, one row a message");
  }
  MixingOptions mixing{.rows = one.rows, .replicas = 1, .total_rows = one.total_rows};
  checks.Expect(SimulateMixing(mixing).updates == UpdatesOfPlainRun(one), "mixing of one replica");
}

void CheckBound(Checks& checks) {
  for (const size_t replicas : {1, 3, 100}) {
    for (const bool strict : {true, false}) {
      FleetOptions options = SmallRun();
      options.rows.noise = 0;
      options.replicas = replicas;
      options.strict = strict;
      options.replication = 50e-3;
      options.jitter = 1;
      const FleetFigures figures = SimulateFleet(options);
      const double bound = figures.largest_norm / figures.least_margin;
      checks.Expect(
          static_cast<double>(figures.updates_ever) <= bound * bound,
          "at most (R / margin)^2 updates with " + std::to_string(replicas) + " replicas");
    }
  }
}

void CheckCounts(const FleetOptions& options, Checks& checks) {
  const FleetFigures figures = SimulateFleet(options);
  checks.Expect(figures.rows == options.total_rows, "every row is evaluated");
  checks.Expect(figures.updates == figures.updates_ever, "an update is counted once");
  checks.Expect(figures.commits <= figures.updates, "a commit holds an update");
  checks.Expect(figures.stale <= figures.called && figures.called <= figures.forwarded &&
                    figures.forwarded <= figures.follower_rows,
                "parts are not larger than their whole");
  checks.Expect(options.strict || figures.called == figures.forwarded,
                "relaxed order forwards only rows that call for an update");
}

void CheckAllCounts(Checks& checks) {
  FleetOptions options = SmallRun();
  options.proxy_above = 1;
  for (const size_t window : {0, 1, 5}) {
    options.window = window;
    options.strict = false;
    CheckCounts(options, checks);
    options.strict = true;
    for (const Closed closed : {Closed::kForward, Closed::kWait, Closed::kWaitUnlessErring}) {
      options.closed = closed;
      CheckCounts(options, checks);
    }
  }
}

}  // namespace

bool CheckFleet() {
  Checks checks;
  CheckPlainRuns(checks);
  CheckBound(checks);
  CheckAllCounts(checks);
  return checks.passed();
}

}  // namespace perceptrond::bench::fleet
