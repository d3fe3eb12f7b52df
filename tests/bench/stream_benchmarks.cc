// Examples a second over the wire.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/bench/benchmark.h"
#include "tests/bench/messages.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {
namespace {

constexpr uint32_t kWeights = 1U << 20;

// A stream and its place in its messages, at either server.
struct Streams {
  Messages real;
  Messages null;
  bool ready = false;
};

struct LearnCase {
  std::string name;
  double goal;
  Form form;
  size_t size;
  bool errs;
};

void Prepare(const LearnCase& learn, size_t rows, Streams& streams) {
  const std::string id = "bench-" + learn.name;
  Servers::Get().CreateModel(id, !learn.errs);
  streams.real =
      LearnMessages(learn.errs ? ErringRows(rows, kWeights, 1) : SparseRows(rows, kWeights, 1),
                    "models/" + id, learn.form, learn.size);
  streams.null = streams.real;
  // Of the rows, given twice, a tenth errs.
  Servers::Get().Converge(streams.real, learn.errs ? 2 * rows / 10 : 0);
  streams.ready = true;
}

// A figure of another stream than the one that is named would mislead.
void CheckMistakes(const LearnCase& learn, const StreamOutcome& outcome) {
  const double share =
      static_cast<double>(outcome.mistakes) / static_cast<double>(outcome.examples);
  if (learn.errs ? share > 0.05 && share < 0.11 : outcome.mistakes == 0) return;
  std::fprintf(stderr, "%s: the model erred on %g of the examples\n", learn.name.c_str(), share);
  std::abort();
}

Benchmark LearnBenchmark(const LearnCase& learn, const Options& options) {
  auto streams = std::make_shared<Streams>();
  return {{{learn.name, "examples/s", Goal::kAtLeast, learn.goal, {}, {}}},
          [learn, streams, &options](std::vector<Figure>& figures) {
            if (!streams->ready) Prepare(learn, options.tiny ? 1000 : 8000, *streams);
            StreamOptions run;
            run.seconds = options.seconds;
            const StreamOutcome real = RunStream(Servers::Get().channel(Server::kReal), streams->real, run);
            const StreamOutcome null = RunStream(Servers::Get().channel(Server::kNull), streams->null, run);
            if (!options.tiny) CheckMistakes(learn, real);
            Add(figures[0], real.rate(), null.rate());
          }};
}

Benchmark PredictBenchmark(const Options& options) {
  auto streams = std::make_shared<Streams>();
  return {{{"predict_stream_packed_100", "examples/s", Goal::kAtLeast, 0.9, {}, {}}},
          [streams, &options](std::vector<Figure>& figures) {
            if (!streams->ready) {
              const Rows rows = SparseRows(options.tiny ? 1000 : 8000, kWeights, 1);
              Servers::Get().CreateModel("bench-predict-stream");
              Messages learn =
                  LearnMessages(rows, "models/bench-predict-stream", Form::kPacked, 100);
              Servers::Get().Converge(learn, 0);
              streams->real = PredictMessages(rows, "models/bench-predict-stream", 100);
              streams->null = streams->real;
              streams->ready = true;
            }
            StreamOptions run;
            run.call = Call::kPredictStream;
            run.seconds = options.seconds;
            const double real = RunStream(Servers::Get().channel(Server::kReal), streams->real, run).rate();
            const double null = RunStream(Servers::Get().channel(Server::kNull), streams->null, run).rate();
            Add(figures[0], real, null);
          }};
}

}  // namespace

std::vector<Benchmark> StreamBenchmarks(const Options& options) {
  const LearnCase cases[] = {
      {"learn_packed_100", 0.9, Form::kPacked, 100, false},
      {"learn_packed_1000", 0.9, Form::kPacked, 1000, false},
      {"learn_packed_100_erring", 0.75, Form::kPacked, 100, true},
      {"learn_packed_1000_erring", 0.75, Form::kPacked, 1000, true},
      {"learn_nested_100", 0.9, Form::kNested, 100, false},
      {"learn_one", 0.9, Form::kPacked, 1, false},
  };
  std::vector<Benchmark> benchmarks;
  for (const LearnCase& one : cases) benchmarks.push_back(LearnBenchmark(one, options));
  benchmarks.push_back(PredictBenchmark(options));
  return benchmarks;
}

}  // namespace perceptrond::bench
