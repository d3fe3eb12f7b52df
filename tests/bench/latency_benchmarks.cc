// Microseconds from a question to its answer, one at a time.
#include <atomic>
#include <memory>
#include <thread>

#include "tests/bench/benchmark.h"
#include "tests/bench/messages.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {
namespace {

using Transport = Servers::Transport;

constexpr uint32_t kWeights = 1U << 20;
constexpr char kModel[] = "models/bench-latency";
constexpr char kErringModel[] = "models/bench-latency-erring";

struct Traffic {
  Messages predict;
  Messages learn;
};

// The converged model that all of these ask.
Traffic& Prepared(const Options& options) {
  static const std::unique_ptr<Traffic> traffic = [&options] {
    const Rows rows = SparseRows(options.tiny ? 200 : 8000, kWeights, 1);
    auto made = std::make_unique<Traffic>();
    made->predict = PredictMessages(rows, kModel, Form::kPacked, 1);
    made->learn = LearnMessages(rows, kModel, Form::kPacked, 100);
    Servers::Get().CreateModel("bench-latency");
    Servers::Get().Converge(made->learn, 0);
    return made;
  }();
  return *traffic;
}

// A model that errs on a tenth of what the stream learns.
Traffic& Erring(const Options& options) {
  static const std::unique_ptr<Traffic> traffic = [&options] {
    const Rows rows = ErringRows(options.tiny ? 200 : 8000, kWeights, 1);
    auto made = std::make_unique<Traffic>();
    made->predict = PredictMessages(rows, kErringModel, Form::kPacked, 1);
    made->learn = LearnMessages(rows, kErringModel, Form::kPacked, 100);
    Servers::Get().CreateModel("bench-latency-erring", false);
    Servers::Get().Converge(made->learn, rows.size() / 10);
    return made;
  }();
  return *traffic;
}

Figure P(const char* name, double goal) { return {name, "us", Goal::kAtMost, goal}; }

Benchmark Unary(const Options& options) {
  return {{P("predict_unary_p50", 1.15), P("predict_unary_p99", 1.15)},
          [&options](int rep, std::vector<Figure>& figures) {
            const auto measure = [&](Server server) {
              return UnaryPredict(Servers::Get().channel(server), Prepared(options).predict,
                                  options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

Benchmark OneAtATime(const char* p50, const char* p99, Transport by, const Options& options) {
  return {{P(p50, 1.15), P(p99, 1.15)}, [by, &options](int rep, std::vector<Figure>& figures) {
            const auto measure = [&](Server server) {
              return StreamPredict(Servers::Get().channel(server, by), Prepared(options).predict,
                                   options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

// Of unary predictions while a stream learns; `rate` 0 learns as fast as it can, and is set to how
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

// The stream errs and its updates are durable; the null servers get it at the rate that ours had.
Benchmark P99WhileLearning(const Options& options) {
  return {{P("predict_unary_p99_while_learning", 1.25)},
          [&options](int rep, std::vector<Figure>& figures) {
            Traffic& traffic = Erring(options);
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

std::vector<Benchmark> LatencyBenchmarks(const Options& options) {
  return {
      Unary(options),
      OneAtATime("predict_stream_tcp_p50", "predict_stream_tcp_p99", Transport::kTcp, options),
      OneAtATime("predict_stream_unix_p50", "predict_stream_unix_p99", Transport::kUnix, options),
      P99WhileLearning(options)};
}

}  // namespace perceptrond::bench
