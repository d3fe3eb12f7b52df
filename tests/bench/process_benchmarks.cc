// What an empty server takes: memory, and time from its start until it serves.
#include <memory>

#include "tests/bench/benchmark.h"
#include "tests/bench/servers.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {

std::vector<Benchmark> ProcessBenchmarks(const Options& /*options*/) {
  return {{{{"empty_resident_memory", "bytes", Goal::kAtMost, 2},
            {"empty_start", "s", Goal::kAtMost, 2}},
           [](int rep, std::vector<Figure>& figures) {
             const testing::TempDir dir;
             std::unique_ptr<testing::Process> real;
             std::unique_ptr<testing::Process> null;
             InTurn(
                 rep,
                 [&] {
                   real =
                       std::make_unique<testing::Process>(ServerCommand(Server::kReal, dir.path()));
                 },
                 [&] {
                   null =
                       std::make_unique<testing::Process>(ServerCommand(Server::kNull, dir.path()));
                 });
             Add(figures[0], real->ResidentBytes(), null->ResidentBytes());
             Add(figures[1], real->start_seconds(), null->start_seconds());
           }}};
}

}  // namespace perceptrond::bench
