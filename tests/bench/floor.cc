#include "tests/bench/floor.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/bench/plain_loop.h"

namespace perceptrond::bench {
namespace {

constexpr int kMaxPasses = 1000;
// Measured in one go; more would take long.
constexpr uint64_t kMaxCommits = 500;

double Used(clockid_t clock) {
  timespec used = {};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

template <typename Work>
double ThreadSeconds(Work work) {
  const double start = Used(CLOCK_THREAD_CPUTIME_ID);
  work();
  return Used(CLOCK_THREAD_CPUTIME_ID) - start;
}

// Repeats `work`; the seconds of one time.
template <typename Work>
double Repeated(double seconds, Work work) {
  int times = 0;
  const double taken = ThreadSeconds([&] {
    const double start = Used(CLOCK_THREAD_CPUTIME_ID);
    do {
      work();
      ++times;
    } while (Used(CLOCK_THREAD_CPUTIME_ID) - start < seconds);
  });
  return taken / times;
}

// The compiler must not leave out what computes it.
void Keep(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

}  // namespace

StreamCost MeasureStream(Server server, Messages& messages, const StreamOptions& options) {
  Servers& servers = Servers::Get();
  const auto used = [&] {
    return Used(CLOCK_PROCESS_CPUTIME_ID) + servers.ProcessorSeconds(server);
  };
  StreamCost cost;
  const double server_start = servers.ProcessorSeconds(server);
  const double start = used();
  cost.outcome = RunStream(servers.channel(server), messages, options);
  cost.processor_seconds = used() - start;
  cost.server_seconds = servers.ProcessorSeconds(server) - server_start;
  return cost;
}

PlainWork::PlainWork(const Rows& rows, uint32_t weights, std::vector<std::string> names,
                     std::vector<uint32_t> table)
    : rows_(rows), names_(std::move(names)), table_(std::move(table)), weights_(weights) {
  size_t before = rows_.batch().rows();
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const size_t mistakes = Pass();
    // A stream that errs never gets to zero.
    if (mistakes == 0 || (pass > 20 && mistakes == before)) break;
    before = mistakes;
  }
  for (const std::string& name : names_)
    numbers_.emplace(name, static_cast<uint32_t>(numbers_.size()));
}

size_t PlainWork::Pass() {
  const Batch rows = rows_.batch();
  std::vector<float> scores(rows.rows());
  std::vector<int32_t> predicted(rows.rows());
  const PlainArrays arrays = {rows.row_ends.data(), rows.indices.data(),
                              rows.values.data(),   rows.labels.data(),
                              rows.rows(),          table_.empty() ? nullptr : table_.data()};
  return PlainLearn(arrays, weights_.data(), scores.data(), predicted.data());
}

double PlainWork::Loop(double seconds) {
  return Repeated(seconds, [&] { Keep(Pass()); }) / static_cast<double>(rows_.batch().rows());
}

double PlainWork::Lookups(double seconds) {
  if (names_.empty()) return 0;
  return Repeated(seconds,
                  [&] {
                    uint64_t sum = 0;
                    for (const std::string& name : names_) sum += numbers_.find(name)->second;
                    Keep(sum);
                  }) /
         static_cast<double>(rows_.batch().rows());
}

double WriteLog(const std::string& directory, uint64_t updates, size_t bytes, uint64_t commits) {
  if (updates == 0) return 0;
  const double updates_a_commit =
      static_cast<double>(updates) / static_cast<double>(std::max<uint64_t>(commits, 1));
  commits = std::clamp<uint64_t>(commits, 1, kMaxCommits);
  const std::string part(static_cast<size_t>(updates_a_commit * static_cast<double>(bytes)) + 1,
                         'x');
  const std::string path = directory + "/plain.log";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) std::abort();
  const double seconds = ThreadSeconds([&] {
    for (uint64_t i = 0; i < commits; ++i) {
      if (write(file, part.data(), part.size()) != static_cast<ssize_t>(part.size()) ||
          fdatasync(file) != 0)
        std::abort();
    }
  });
  close(file);
  unlink(path.c_str());
  return seconds / (static_cast<double>(commits) * updates_a_commit);
}

}  // namespace perceptrond::bench
