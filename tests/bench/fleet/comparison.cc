#include "tests/bench/fleet/comparison.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "tests/bench/fleet/mixing.h"
#include "tests/bench/fleet/table.h"

namespace perceptrond::bench::fleet {
namespace {

constexpr uint64_t kBetween[] = {10, 100, 1000};
constexpr size_t kFreshRows = 50'000;

struct Row {
  const char* system;
  size_t replicas;
  double noise;
  uint64_t updates;
  double progressive;
  double copies;
  double weights;
  double mean;
  // Of a row of `dimension` values.
  double values_sent;
};

void Print(const Row& row) {
  std::printf("| %s | %zu | %.3g | %llu | %.3f | %.3f | %.3f | %s | %.3g |\n", row.system,
              row.replicas, 100 * row.noise, static_cast<unsigned long long>(row.updates),
              100 * row.progressive, 100 * row.copies, 100 * row.weights,
              row.mean < 0 ? "" : absl::StrFormat("%.3f", 100 * row.mean).c_str(), row.values_sent);
}

// A forwarded row goes to the writer, and an update to every other replica.
void PrintFleet(const SimulatedPoint& point) {
  const auto& [options, f] = point;
  const double rows = static_cast<double>(f.rows);
  const double sent =
      (static_cast<double>(f.forwarded) + static_cast<double>(f.updates * (options.replicas - 1))) /
      rows;
  Print({options.strict ? "fleet, strict" : "fleet, relaxed", options.replicas, options.rows.noise,
         f.updates, f.ErrorRate(), options.replicas == 1 ? f.ErrorRate() : f.CopyErrorRate(),
         TrueErrorRate(options.rows, f.newest, kFreshRows),
         TrueErrorRate(options.rows, f.mean, kFreshRows), sent});
}

// Every replica sends its weights and gets their mean.
void PrintMixing(const MixingOptions& options, const MixingFigures& f) {
  const double rows = static_cast<double>(f.rows);
  const double error = static_cast<double>(f.updates) / rows;
  const double sent = static_cast<double>(2 * options.replicas * f.mixes) / rows;
  Print({absl::StrFormat("mixing every %u", options.rows_between).c_str(), options.replicas,
         options.rows.noise, f.updates, error, error,
         TrueErrorRate(options.rows, f.weights, kFreshRows), -1, sent});
}

}  // namespace

Panel CompareWithMixing(bool tiny) {
  std::printf(
      "\n## Beside averaging of the replicas' weights\n\n"
      "Errors in %%; \"weights\" and \"mean weights\" are evaluated at the end on rows whose "
      "labels are\n"
      "right. Sent: rows or weight vectors, for each row.\n\n"
      "| system | replicas | noise | updates | progressive error | copies err | weights err "
      "| mean weights err | sent |\n|---|---|---|---|---|---|---|---|---|\n");
  Panel panel{"replicas", "updates until learned", {}, {}, {}, {}};
  panel.notes = {"1,000,000 separable rows,", "margin 0.05"};
  panel.series = {{"fleet, strict", {}, {}},
                  {"fleet, relaxed", {}, {}},
                  {"mixing every 10 rows", {}, {}},
                  {"mixing every 100", {}, {}},
                  {"mixing every 1,000", {}, {}}};
  panel.bound_name = "(R / margin)² = 400";
  const uint64_t rows = tiny ? 20'000 : 1'000'000;
  for (const double noise : {0.0, 0.002, 0.01, 0.05}) {
    for (const size_t replicas : {1, 3, 10, 30, 100, 300, 1000}) {
      if (tiny && (noise > 0 || replicas > 10)) continue;
      const auto x = static_cast<double>(replicas);
      std::vector<FleetOptions> runs(2);
      for (const size_t i : {0, 1}) {
        runs[i].rows.noise = noise;
        runs[i].replicas = replicas;
        runs[i].strict = i == 0;
        runs[i].total_rows = rows;
      }
      const std::vector<SimulatedPoint> fleet = SimulateAll(runs);
      for (const size_t i : {0, 1}) {
        PrintFleet(fleet[i]);
        if (noise == 0)
          panel.series[i].simulated.push_back({x, static_cast<double>(fleet[i].figures.updates)});
      }
      if (noise == 0) panel.bound.push_back({x, 400});
      for (const size_t i : {0, 1, 2}) {
        const MixingOptions options{runs[0].rows, replicas, kBetween[i], rows};
        const MixingFigures figures = SimulateMixing(options);
        PrintMixing(options, figures);
        if (noise == 0)
          panel.series[2 + i].simulated.push_back({x, static_cast<double>(figures.updates)});
      }
      std::fflush(stdout);
    }
  }
  return panel;
}

void CompareWithSharding() {
  std::printf(
      "\n## Beside models that are each on one replica\n\n"
      "Rows a second, in units of what one replica evaluates, for models whose rows follow Zipf's "
      "law.\n"
      "The last column: a fleet is faster if it forwards less than this %%.\n\n"
      "| replicas | models | largest share | sharded | fleet forwarding 1 %% | 10 %% | 50 %% | "
      "limit |\n|---|---|---|---|---|---|---|---|\n");
  for (const size_t replicas : {3, 10, 100}) {
    for (const size_t models : {1, 10, 100, 1000, 100'000}) {
      const double share = LargestShare(models, replicas);
      const double part = 1 / static_cast<double>(replicas);
      std::printf("| %zu | %zu | %.3f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", replicas, models,
                  share, ShardedCapacity(share), FleetCapacity(share, replicas, 0.01),
                  FleetCapacity(share, replicas, 0.1), FleetCapacity(share, replicas, 0.5),
                  100 * (share - part) / ((1 - part) * share));
    }
  }
}

}  // namespace perceptrond::bench::fleet
