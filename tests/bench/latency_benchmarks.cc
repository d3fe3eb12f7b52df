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

struct Traffic {
  Messages predict;
  Messages learn;
};

// The converged model that all of these ask.
Traffic& Prepared(const Options& options) {
  static const std::unique_ptr<Traffic> traffic = [&options] {
    const Rows rows = SparseRows(options.tiny ? 200 : 8000, kWeights, 1);
    auto made = std::make_unique<Traffic>();
    made->predict = PredictMessages(rows, kModel, 1);
    made->learn = LearnMessages(rows, kModel, Form::kPacked, 100);
    Servers::Get().CreateModel("bench-latency");
    Servers::Get().Converge(made->learn, 0);
    return made;
  }();
  return *traffic;
}

Figure P(const char* name, double goal) { return {name, "us", Goal::kAtMost, goal, {}, {}}; }

Benchmark Unary(const Options& options) {
  return {{P("predict_unary_p50", 1.1), P("predict_unary_p99", 1.1)},
          [&options](std::vector<Figure>& figures) {
            Messages& messages = Prepared(options).predict;
            const Latency real = UnaryPredict(Servers::Get().channel(Server::kReal), messages, options.seconds);
            const Latency null = UnaryPredict(Servers::Get().channel(Server::kNull), messages, options.seconds);
            Add(figures[0], real.p50, null.p50);
            Add(figures[1], real.p99, null.p99);
          }};
}

Benchmark OneAtATime(const char* p50, const char* p99, Transport by, const Options& options) {
  return {{P(p50, 1.1), P(p99, 1.1)}, [by, &options](std::vector<Figure>& figures) {
            Messages& messages = Prepared(options).predict;
            const Latency real = StreamPredict(Servers::Get().channel(Server::kReal, by), messages, options.seconds);
            const Latency null = StreamPredict(Servers::Get().channel(Server::kNull, by), messages, options.seconds);
            Add(figures[0], real.p50, null.p50);
            Add(figures[1], real.p99, null.p99);
          }};
}

// Of unary predictions while a stream learns; `rate` 0 learns as fast as it can, and is set to how
// fast that was.
double P99WhileLearning(grpc::Channel& channel, Traffic& traffic, double seconds, double& rate) {
  std::atomic<bool> stop = false;
  StreamOptions run;
  run.stop = &stop;
  run.rate = rate;
  std::thread learner([&] { rate = RunStream(channel, traffic.learn, run).rate(); });
  const Latency latency = UnaryPredict(channel, traffic.predict, seconds);
  stop = true;
  learner.join();
  return latency.p99;
}

Benchmark WhileLearning(const Options& options) {
  return {{P("predict_unary_p99_while_learning", 1.25)}, [&options](std::vector<Figure>& figures) {
            double rate = 0;
            const double real =
                P99WhileLearning(Servers::Get().channel(Server::kReal), Prepared(options), options.seconds, rate);
            const double null =
                P99WhileLearning(Servers::Get().channel(Server::kNull), Prepared(options), options.seconds, rate);
            Add(figures[0], real, null);
          }};
}

}  // namespace

std::vector<Benchmark> LatencyBenchmarks(const Options& options) {
  return {
      Unary(options),
      OneAtATime("predict_stream_tcp_p50", "predict_stream_tcp_p99", Transport::kTcp, options),
      OneAtATime("predict_stream_unix_p50", "predict_stream_unix_p99", Transport::kUnix, options),
      WhileLearning(options)};
}

}  // namespace perceptrond::bench
