#include "tests/bench/scaling_model.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/strings/match.h"

namespace perceptrond::bench {
namespace {

// As server/server.cc has it.
double PollingThreads(size_t processors) {
  return static_cast<double>(processors < 8 ? 1 : std::min<size_t>((processors + 1) / 3, 16));
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
                  size_t processors, bool shared) {
  const auto streams = static_cast<double>(point.streams);
  std::vector<std::pair<std::string, double>> nanos = {
      {"processors",
       (point.server() + (shared ? point.client : 0)) / static_cast<double>(processors)},
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

void ScalingTable::Add(const ScalingPoint& one, const ScalingPoint& all, const LockUses& locks,
                       size_t processors) {
  rows_.push_back({one, all, locks, processors});
}

void ScalingTable::Print() const {
  std::printf(
      "## %s\n\n"
      "Thousand examples a second; server and client in processor nanoseconds an example; "
      "journal: the part of the time in which commits are written.\n\n"
      "| streams | on 1 | on %zu, with the client | bound of that | by | mistakes | client | "
      "server "
      "| pollers | workers | committer | RocksDB | others | journal | bound on %zu | by |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      name_.c_str(), rows_.front().processors, processors_);
  for (const Row& row : rows_) {
    const ScalingPoint& all = row.all;
    const Bound here = LowestBound(row.one, row.locks, one_model_, row.processors, true);
    const Bound more = LowestBound(all, row.locks, one_model_, processors_, false);
    std::printf(
        "| %zu | %.0f | %.0f | %.0f | %s | %.3f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | "
        "%.2f | %.0f | %s |\n",
        all.streams, row.one.rate / 1e3, all.rate / 1e3, here.rate / 1e3, here.resource.c_str(),
        all.mistakes, all.client, all.server(), all.pollers, all.workers, all.committer,
        all.rocksdb, all.others, all.rate * all.commits / 1e9, more.rate / 1e3,
        more.resource.c_str());
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
