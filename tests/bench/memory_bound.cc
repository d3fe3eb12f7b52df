// How much of a sparse row's cost is waiting for its weights, whatever is done with them: prints a
// table of nanoseconds a row of 75 features, medians of kRounds interleaved rounds over the rows of
// core_sparse and core_sparse_beyond_caches.
//
//   memory_bound
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "core/vector/float_array.h"
#include "core/vector/kernels.h"
#include "tests/bench/plain_loop.h"
#include "tests/bench/rows.h"

namespace perceptrond::bench {
namespace {

constexpr int kRounds = 21;

struct Way {
  std::string name;
  std::function<double()> over_all_rows;
  std::vector<double> nanoseconds;
};

// One request for each weight and nothing else, as many at once as the processor has under way.
double Fetch(const FloatArray& weights, const Rows& rows) {
  for (const uint32_t index : rows.indices) __builtin_prefetch(&weights[index], 0, 2);
  return 0;
}

// Reads rows as LinearLearner does, without evaluating them.
double ScanAll(const FloatArray& weights, const Rows& rows) {
  static std::vector<RowScan> scans;
  scans.resize(rows.size());
  ScanRows(weights, {}, rows.batch(), 0, scans);
  return scans.front().dot;
}

double PlainLoop(const Rows& rows, std::vector<float>& weights) {
  static std::vector<float> scores;
  static std::vector<int32_t> predicted;
  scores.resize(rows.size());
  predicted.resize(rows.size());
  return static_cast<double>(PlainLearn({rows.row_ends.data(), rows.indices.data(),
                                         rows.values.data(), rows.labels.data(), rows.size(), 0},
                                        weights.data(), scores.data(), predicted.data()));
}

void Measure(size_t count, uint32_t size) {
  const Rows rows = SparseRows(count, size, 1);
  const FloatArray weights(size, 1);
  std::vector<float> plain_weights(size);
  // Until it errs on none of them.
  while (PlainLoop(rows, plain_weights) > 0) {
  }
  std::vector<Way> ways = {
      {"the weights fetched, nothing computed", [&] { return Fetch(weights, rows); }, {}},
      {"scanned: product, norm, order", [&] { return ScanAll(weights, rows); }, {}},
      {"the plain loop", [&] { return PlainLoop(rows, plain_weights); }, {}}};
  volatile double used = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Way& way : ways) {
      const auto start = std::chrono::steady_clock::now();
      used = used + way.over_all_rows();
      const std::chrono::duration<double, std::nano> taken =
          std::chrono::steady_clock::now() - start;
      way.nanoseconds.push_back(taken.count() / static_cast<double>(rows.size()));
    }
  }
  for (Way& way : ways) {
    std::sort(way.nanoseconds.begin(), way.nanoseconds.end());
    std::printf("| %u | %s | %.0f |\n", size, way.name.c_str(), way.nanoseconds[kRounds / 2]);
  }
}

}  // namespace
}  // namespace perceptrond::bench

int main() {
  std::puts("| weights | 75 of them | ns a row |\n|---|---|---|");
  perceptrond::bench::Measure(8000, 1U << 20);
  perceptrond::bench::Measure(40000, 1U << 24);
}
