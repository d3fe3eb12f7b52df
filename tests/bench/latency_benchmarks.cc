// Microseconds from a question to its answer, one at a time; and what an empty server takes.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tests/bench/benchmark.h"
#include "tests/bench/messages.h"
#include "tests/bench/servers.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {
namespace {

using Transport = Servers::Transport;

struct Traffic {
  Messages predict;
  Messages learn;
};

// Made when first asked for: of a converged model, or of one that errs on a tenth of what its stream
// learns.
Traffic& Prepared(bool errs, const Options& options) {
  static std::unique_ptr<Traffic> prepared[2];
  std::unique_ptr<Traffic>& traffic = prepared[errs ? 1 : 0];
  if (traffic != nullptr) return *traffic;
  const size_t count = options.tiny ? 200 : 8000;
  const Rows rows =
      errs ? ErringRows(count, kHashedWeights, 1) : SparseRows(count, kHashedWeights, 1);
  const std::string id = errs ? "bench-latency-erring" : "bench-latency";
  traffic = std::make_unique<Traffic>();
  traffic->predict = PredictMessages(rows, "models/" + id, Form::kPacked, 1);
  traffic->learn = LearnMessages(rows, "models/" + id, Form::kPacked, 100);
  Servers::Get().CreateModel(id, /*named_space=*/false, /*offset=*/!errs);
  Servers::Get().Converge(traffic->learn, errs ? rows.size() / 10 : 0);
  return *traffic;
}

Figure P(const char* name, double goal) { return {name, "us", Goal::kAtMost, goal}; }

Benchmark Unary(const Options& options) {
  return {{P("predict_unary_p50", 1.15), P("predict_unary_p99", 1.15)},
          [&options](int rep, std::vector<Figure>& figures) {
            const auto measure = [&](Server server) {
              return UnaryPredict(Servers::Get().channel(server), Prepared(false, options).predict,
                                  options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

Benchmark OneAtATime(const char* p50, const char* p99, Transport by, const Options& options) {
  return {{P(p50, 1.15), P(p99, 1.15)}, [by, &options](int rep, std::vector<Figure>& figures) {
            const auto measure = [&](Server server) {
              return StreamPredict(Servers::Get().channel(server, by),
                                   Prepared(false, options).predict, options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

// The latency of unary predictions while a stream learns; `rate` 0 learns as fast as it can, and is set to how
// fast that was.
Latency WhileLearning(Server server, Traffic& traffic, double seconds, double& rate) {
  grpc::Channel& channel = Servers::Get().channel(server);
  std::atomic<bool> stop = false;
  StreamOptions run;
  run.stop = &stop;
  run.rate = rate;
  std::thread learner([&] { rate = RunStream(channel, traffic.learn, run).rate(); });
  const Latency latency = UnaryPredict(channel, traffic.predict, seconds);
  stop = true;
  learner.join();
  return latency;
}

// The stream errs and its updates are durable; the null server gets it at the rate that ours had.
Benchmark P99WhileLearning(const Options& options) {
  return {{P("predict_unary_p99_while_learning", 1.25)},
          [&options](int rep, std::vector<Figure>& figures) {
            Traffic& traffic = Prepared(true, options);
            // Ours as fast as it can in the first repetition; then all at the latest rate.
            static double rate = 0;
            double ours = 0;
            double null = 0;
            const auto measure_ours = [&] {
              double learned = 0;
              ours = WhileLearning(Server::kReal, traffic, options.seconds, learned).p99;
              rate = learned;
            };
            const auto measure_null = [&] {
              double at = rate;
              null = WhileLearning(Server::kNull, traffic, options.seconds, at).p99;
            };
            InTurn(rate == 0 ? 0 : rep, measure_ours, measure_null);
            Add(figures[0], ours, null);
          }};
}

}  // namespace

Benchmark EmptyServer() {
  const auto measure = [](int rep, std::vector<Figure>& figures) {
    const testing::TempDir dir;
    std::unique_ptr<testing::Process> real;
    std::unique_ptr<testing::Process> null;
    InTurn(
        rep,
        [&] {
          real = std::make_unique<testing::Process>(ServerCommand(Server::kReal, dir.path()));
        },
        [&] {
          null = std::make_unique<testing::Process>(ServerCommand(Server::kNull, dir.path()));
        });
    Add(figures[0], real->ResidentBytes(), null->ResidentBytes());
    Add(figures[1], real->start_seconds(), null->start_seconds());
  };
  return {{{"empty_resident_memory", "bytes", Goal::kAtMost, 2},
           {"empty_start", "s", Goal::kAtMost, 2}},
          measure};
}

std::vector<Benchmark> LatencyBenchmarks(const Options& options) {
  return {
      Unary(options),
      OneAtATime("predict_stream_tcp_p50", "predict_stream_tcp_p99", Transport::kTcp, options),
      OneAtATime("predict_stream_unix_p50", "predict_stream_unix_p99", Transport::kUnix, options),
      P99WhileLearning(options)};
}

}  // namespace perceptrond::bench
