// How the rate of examples over the wire depends on features an example, weights, models and
// streams: tables for docs/performance.md on standard output, and its picture.
//   cost_growth [--reps N] [--seconds S] [--svg FILE] [--tiny]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/growth_picture.h"
#include "tests/bench/messages.h"
#include "tests/bench/report.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {
namespace {

struct Settings {
  int reps = 3;
  double seconds = 0.5;
  std::string svg;
  bool tiny = false;
};

constexpr size_t kRowsAMessage = 100;

using Rate = std::function<double()>;

// Medians of interleaved repetitions.
GrowthPoint Measure(double x, const Settings& settings, const Rate& ours, const Rate& null) {
  std::vector<double> our_rates;
  std::vector<double> null_rates;
  for (int i = 0; i < settings.reps; ++i) {
    our_rates.push_back(ours());
    null_rates.push_back(null());
  }
  std::fprintf(stderr, "  %g\n", x);
  return {x, Median(our_rates), Median(null_rates)};
}

// A stream of rows that a model has learned, at both servers.
GrowthPoint MeasureConverged(double x, const Settings& settings, const Rows& rows, uint32_t bits) {
  Servers& servers = Servers::Get();
  servers.CreateModel("growth", true, bits);
  Messages real = LearnMessages(rows, "models/growth", Form::kPacked, kRowsAMessage);
  Messages null = real;
  servers.Converge(real, 0);
  StreamOptions run;
  run.seconds = settings.seconds;
  const GrowthPoint point = Measure(
      x, settings, [&] { return RunStream(servers.channel(Server::kReal), real, run).rate(); },
      [&] { return RunStream(servers.channel(Server::kNull), null, run).rate(); });
  servers.DeleteModel("growth");
  return point;
}

// Seconds an example as a + b x, by least squares of their ratio to what was measured.
void FitLinear(GrowthCurve& curve) {
  double s0 = 0;
  double s1 = 0;
  double s2 = 0;
  double r0 = 0;
  double r1 = 0;
  for (const GrowthPoint& point : curve.points) {
    const double weight = point.ours;
    s0 += weight * weight;
    s1 += weight * weight * point.x;
    s2 += weight * weight * point.x * point.x;
    r0 += weight;
    r1 += weight * point.x;
  }
  const double b = (s0 * r1 - s1 * r0) / (s0 * s2 - s1 * s1);
  const double a = (r0 - b * s1) / s0;
  for (const GrowthPoint& point : curve.points) curve.law_rates.push_back(1 / (a + b * point.x));
  curve.law = absl::StrFormat("%.0f + %.1f f ns", 1e9 * a, 1e9 * b);
}

void FitConstant(GrowthCurve& curve) {
  std::vector<double> rates;
  for (const GrowthPoint& point : curve.points) rates.push_back(point.ours);
  curve.law = "constant";
  curve.law_rates.assign(rates.size(), Median(rates));
}

// Rows of one feature with random labels would contradict each other.
void LabelByIndex(Rows& rows) {
  for (size_t i = 0; i < rows.size(); ++i) rows.labels[i] = rows.indices[i] % 2 == 0 ? 1 : -1;
}

GrowthCurve Features(const Settings& settings) {
  GrowthCurve curve;
  curve.x_title = "features an example (2^20 weights)";
  for (const size_t features : {1, 3, 10, 30, 100, 300, 1000}) {
    const size_t count = std::clamp<size_t>(600'000 / features, 400, settings.tiny ? 400 : 8000);
    Rows rows = SparseRows(count, 1U << 20, 1, features);
    if (features == 1) LabelByIndex(rows);
    curve.points.push_back(MeasureConverged(static_cast<double>(features), settings, rows, 20));
  }
  FitLinear(curve);
  return curve;
}

GrowthCurve Weights(const Settings& settings) {
  GrowthCurve curve;
  curve.x_title = "weights of the model (75 features an example)";
  for (uint32_t bits = 10; bits <= (settings.tiny ? 14U : 26U); bits += 2) {
    const uint32_t size = 1U << bits;
    const size_t rows = std::clamp<size_t>(size / 8, 100, settings.tiny ? 400 : 40'000);
    curve.points.push_back(MeasureConverged(size, settings, SparseRows(rows, size, 1), bits));
  }
  FitConstant(curve);
  return curve;
}

GrowthCurve Models(const Settings& settings) {
  GrowthCurve curve;
  curve.x_title = "models, asked in turn (2^12 weights each)";
  Servers& servers = Servers::Get();
  const Rows rows = SparseRows(200, 1U << 12, 1);
  int made = 0;
  Messages real;
  for (const int models : {1, 10, 100, 1000, 10'000}) {
    if (settings.tiny && models > 10) break;
    for (; made < models; ++made) {
      const std::string id = absl::StrCat("many-", made);
      servers.CreateModel(id, true, 12);
      Messages learn = LearnMessages(rows, "models/" + id, Form::kPacked, kRowsAMessage);
      StreamOptions once;
      once.messages = learn.rest.size();
      RunStream(servers.channel(Server::kReal), learn, once);
      Messages ask = PredictMessages(rows, "models/" + id, Form::kPacked, kRowsAMessage);
      if (made == 0) real.first = ask.first;
      real.rest.push_back(ask.rest[0]);
      real.examples.push_back(ask.examples[0]);
    }
    Messages null = real;
    real.next = null.next = 0;
    StreamOptions run;
    run.call = Call::kPredictStream;
    run.seconds = settings.seconds;
    curve.points.push_back(Measure(
        models, settings,
        [&] { return RunStream(servers.channel(Server::kReal), real, run).rate(); },
        [&] { return RunStream(servers.channel(Server::kNull), null, run).rate(); }));
  }
  FitConstant(curve);
  return curve;
}

// All streams at once; returns the examples a second of all of them together.
double RateOfStreams(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
                     std::vector<Messages>& messages, const StreamOptions& run) {
  std::vector<double> rates(channels.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < channels.size(); ++i) {
    threads.emplace_back([&, i] { rates[i] = RunStream(*channels[i], messages[i], run).rate(); });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

GrowthCurve Streams(const Settings& settings) {
  GrowthCurve curve;
  curve.x_title = "streams that learn one model (75 of 2^20)";
  Servers& servers = Servers::Get();
  servers.CreateModel("growth-streams");
  const Rows rows = SparseRows(settings.tiny ? 400 : 8000, 1U << 20, 1);
  Messages one = LearnMessages(rows, "models/growth-streams", Form::kPacked, kRowsAMessage);
  servers.Converge(one, 0);
  std::vector<std::shared_ptr<grpc::Channel>> real;
  std::vector<std::shared_ptr<grpc::Channel>> null;
  StreamOptions run;
  run.seconds = settings.seconds;
  for (const size_t streams : {1, 2, 4, 8, 16, 32, 64}) {
    if (settings.tiny && streams > 2) break;
    while (real.size() < streams) {
      real.push_back(servers.NewChannel(Server::kReal));
      null.push_back(servers.NewChannel(Server::kNull));
    }
    std::vector<Messages> our_messages(streams, one);
    std::vector<Messages> null_messages(streams, one);
    curve.points.push_back(Measure(
        static_cast<double>(streams), settings,
        [&] { return RateOfStreams(real, our_messages, run); },
        [&] { return RateOfStreams(null, null_messages, run); }));
  }
  FitConstant(curve);
  return curve;
}

// Of the law, where it is farthest off.
double Deviation(const GrowthCurve& curve) {
  double most = 0;
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const double ratio = curve.points[i].ours / curve.law_rates[i];
    most = std::max(most, std::max(ratio, 1 / ratio) - 1);
  }
  return most;
}

void Print(const GrowthCurve& curve) {
  std::printf("| %s | perceptrond, examples/s | null server | ratio |\n|---|---|---|---|\n",
              curve.x_title.c_str());
  for (const GrowthPoint& point : curve.points) {
    std::printf("| %.0f | %.4g | %.4g | %.2f |\n", point.x, point.ours, point.null,
                point.ours / point.null);
  }
  std::printf("\nLaw: %s; off by at most %.0f %%.\n\n", curve.law.c_str(), 100 * Deviation(curve));
}

int Main(const Settings& settings) {
  std::vector<GrowthCurve> curves;
  for (GrowthCurve (*measure)(const Settings&) : {Features, Weights, Models, Streams}) {
    curves.push_back(measure(settings));
    Print(curves.back());
    std::fflush(stdout);
  }
  Servers::Stop();
  if (settings.svg.empty()) return 0;
  std::ofstream file(settings.svg);
  file << DrawGrowth(curves,
                     "Packed columns over the loopback, medians; client and server on "
                     "the same two cores");
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "cannot write %s\n", settings.svg.c_str());
  return 1;
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::Settings settings;
  CLI::App app("What the rate of examples depends on", "cost_growth");
  app.add_option("--reps", settings.reps, "Repetitions; medians are shown")
      ->check(CLI::Range(1, 99));
  app.add_option("--seconds", settings.seconds, "Of each measurement")->check(CLI::PositiveNumber);
  app.add_option("--svg", settings.svg, "Where the picture goes");
  app.add_flag("--tiny", settings.tiny, "Few points: shows that it runs, and nothing else");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  return perceptrond::bench::Main(settings);
}
