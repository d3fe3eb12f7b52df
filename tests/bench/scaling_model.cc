#include "tests/bench/scaling_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/strings/match.h"

namespace perceptrond::bench {
namespace {

// As server/server.cc has it.
double PollingThreads(double processors) {
  return processors < 8 ? 1 : std::min(std::floor((processors + 1) / 3), 16.0);
}

double Held(const LockUses& locks, const std::string& kind) {
  const auto found = locks.find(kind);
  return found == locks.end() ? 0 : found->second.held;
}

}  // namespace

void ScalingPoint::AddThread(const std::string& name, double nanos) {
  double& sum = name == "poller"                    ? pollers
                : name == "worker"                  ? workers
                : name == "committer"               ? committer
                : absl::StartsWith(name, "rocksdb") ? rocksdb
                                                    : others;
  sum += nanos;
}

Bound LowestBound(const ScalingPoint& point, const LockUses& locks, bool one_model,
                  double processors, bool shared) {
  const auto streams = static_cast<double>(point.streams);
  std::vector<std::pair<std::string, double>> nanos = {
      {"processors", (point.server() + (shared ? point.client : 0)) / processors},
      {"pollers", point.pollers / PollingThreads(processors)},
      {"streams", point.workers / streams},
      {"committer", point.committer},
  };
  if (one_model) {
    nanos.emplace_back("state", Held(locks, "state"));
    nanos.emplace_back("ledger", Held(locks, "ledger"));
  }
  const auto most = std::max_element(
      nanos.begin(), nanos.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return {1e9 / most->second, most->first};
}

void ScalingTable::Print() const {
  std::printf(
      "## %s\n\nThousand examples a second, with the server on one processor and on all, which it "
      "shares with the client; what the model takes from the first for the second, on the "
      "processors that were used or idle then; processor nanoseconds an example; the bound on %d "
      "processors.\n\n| streams | on one | on all | model | used | idle | mistakes | client | "
      "server "
      "| pollers | workers | committer | RocksDB | others | on %d | by |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      name_.c_str(), processors_, processors_);
  for (const Row& row : rows_) {
    const ScalingPoint& all = row.all;
    const Bound here = LowestBound(row.one, row.locks, one_model_, all.used() + all.idle, true);
    const Bound more = LowestBound(all, row.locks, one_model_, processors_, false);
    std::printf(
        "| %zu | %.0f | %.0f | %.0f | %.2f | %.2f | %.3f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f "
        "| %.0f | %.0f | %s |\n",
        all.streams, row.one.rate / 1e3, all.rate / 1e3, here.rate / 1e3, all.used(), all.idle,
        all.mistakes, all.client, all.server(), all.pollers, all.workers, all.committer,
        all.rocksdb, all.others, more.rate / 1e3, more.resource.c_str());
  }
  std::puts("");
  PrintLocks();
}

void ScalingTable::PrintLocks() const {
  std::puts("Locks acquired by a thousand examples (contended), and held exclusively, in us.\n");
  std::printf("| streams |");
  LockUses kinds;
  for (const Row& row : rows_) kinds.insert(row.locks.begin(), row.locks.end());
  for (const auto& [kind, use] : kinds) std::printf(" %s |", kind.c_str());
  std::printf(" all | state held | ledger held |\n|---|");
  for (size_t i = 0; i < kinds.size() + 3; ++i) std::printf("---|");
  std::puts("");
  for (const Row& row : rows_) {
    std::printf("| %zu |", row.all.streams);
    LockUse all;
    for (const auto& [kind, unused] : kinds) {
      const auto found = row.locks.find(kind);
      const LockUse use = found == row.locks.end() ? LockUse() : found->second;
      std::printf(" %.1f (%.2f) |", 1e3 * use.acquired, 1e3 * use.contended);
      all += use;
    }
    std::printf(" %.1f (%.2f) | %.0f | %.0f |\n", 1e3 * all.acquired, 1e3 * all.contended,
                Held(row.locks, "state"), Held(row.locks, "ledger"));
  }
  std::puts("");
}

}  // namespace perceptrond::bench
