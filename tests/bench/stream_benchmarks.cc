// Examples a second over the wire, in the forms that cost a server least; form_benchmarks.cc has the
// others.
#include "tests/bench/benchmark.h"
#include "tests/bench/stream_case.h"

namespace perceptrond::bench {
std::vector<Benchmark> StreamBenchmarks(const Options& options) {
  const StreamCase cases[] = {
      {.name = "learn_packed_100", .goal = 0.9},
      {.name = "learn_packed_1000", .goal = 0.9, .size = 1000},
      {.name = "learn_packed_100_erring", .goal = 0.6, .work = Work::kErring},
      {.name = "learn_packed_1000_erring", .goal = 0.6, .work = Work::kErring, .size = 1000},
      {.name = "learn_nested_100", .goal = 0.8, .form = Form::kNested},
      {.name = "learn_one", .goal = 0.95, .size = 1},
      {.name = "learn_named_100",
       .goal = 0.75,
       .form = Form::kPackedNames,
       .words = true,
       .named_space = true},
      {.name = "predict_stream_packed_100", .goal = 0.9, .work = Work::kPredict},
  };
  std::vector<Benchmark> benchmarks;
  for (const StreamCase& stream : cases) benchmarks.push_back(StreamBenchmark(stream, options));
  return benchmarks;
}

}  // namespace perceptrond::bench
