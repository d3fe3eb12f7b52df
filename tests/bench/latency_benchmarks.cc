// Microseconds from a question to its answer, one at a time.
#include <memory>

#include "tests/bench/benchmark.h"
#include "tests/bench/messages.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {
namespace {

// Predictions of a converged model.
Messages Predictions(const Options& options) {
  const Rows rows = SparseRows(options.tiny ? 200 : 8000, kHashedWeights, 1);
  const std::string id = "bench-latency";
  Messages learn = LearnMessages(rows, "models/" + id, Form::kPacked, 100);
  Servers::Get().CreateModel(id, /*named_space=*/false, /*offset=*/true);
  Servers::Get().Converge(learn, 0);
  return PredictMessages(rows, "models/" + id, Form::kPacked, 1);
}

}  // namespace

Benchmark UnaryLatency(const Options& options) {
  const auto messages = std::make_shared<Messages>();
  return {{{"predict_unary_p50", "us", Goal::kAtMost, 1.15},
           {"predict_unary_p99", "us", Goal::kAtMost, 1.15}},
          [messages, &options](int rep, std::vector<Figure>& figures) {
            if (messages->rest.empty()) *messages = Predictions(options);
            const auto measure = [&](Server server) {
              return UnaryPredict(Servers::Get().channel(server), *messages, options.seconds);
            };
            Latency ours;
            Latency null;
            InTurn(
                rep, [&] { ours = measure(Server::kReal); },
                [&] { null = measure(Server::kNull); });
            Add(figures[0], ours.p50, null.p50);
            Add(figures[1], ours.p99, null.p99);
          }};
}

}  // namespace perceptrond::bench
