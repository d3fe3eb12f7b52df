// Beside other programs, with the same examples: Vowpal Wabbit's daemon, which receives them as
// text, and a bare echo.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/line_peer.h"
#include "tests/bench/messages.h"
#include "tests/bench/stream_case.h"

namespace perceptrond::bench {
namespace {

constexpr uint32_t kWords = 100'000;

// As StreamRun has them for words.
Rows Words(const Options& options) { return ZipfRows(options.tiny ? 1000 : 8000, kWords, 1); }

// Rows in Vowpal Wabbit's text: "1 | word5 word17".
std::vector<std::string> VwLines(const Rows& rows, bool labels) {
  std::vector<std::string> lines;
  for (const std::string& line : TextLines(rows)) {
    const size_t tab = line.find('\t');
    lines.push_back(
        absl::StrCat(labels ? line.substr(0, tab) : "", " | ", line.substr(tab + 1), "\n"));
  }
  return lines;
}

// A peer that starts when first measured.
struct Peer {
  std::unique_ptr<LinePeer> server;
  std::vector<std::string> lines;
};

Benchmark LearnBesideVw(const StreamCase& stream, const Options& options) {
  const auto run = std::make_shared<StreamRun>(stream, options);
  const auto vw = std::make_shared<Peer>();
  return {{stream.figure()}, [run, vw, &options](int rep, std::vector<Figure>& figures) {
            if (vw->server == nullptr) {
              vw->server = std::make_unique<LinePeer>(LinePeer::VowpalWabbit(options.vw));
              vw->lines = VwLines(Words(options), true);
            }
            StreamRates rates;
            double theirs = 0;
            InTurn(
                rep, [&] { rates = run->Measure(rep); },
                [&] { theirs = vw->server->Rate(vw->lines, options.seconds); });
            rates.floor = theirs;
            rates.AddTo(figures[0]);
          }};
}

// One prediction at a time by name over TCP, beside a peer's answer to the same as text.
Benchmark PredictOneBeside(const char* name, bool is_vw, const Options& options) {
  struct State {
    Peer peer;
    Messages messages;
  };
  const auto state = std::make_shared<State>();
  const std::string row = absl::StrCat("predict_one_beside_", name);
  const auto prepare = [state, row, is_vw, &options] {
    state->peer.server =
        std::make_unique<LinePeer>(is_vw ? LinePeer::VowpalWabbit(options.vw) : LinePeer::Echo());
    const Rows rows = Words(options);
    state->peer.lines = VwLines(rows, false);
    const std::string id = absl::StrCat("bench-", row);
    Servers::Get().CreateModel(id);
    Messages learn = LearnMessages(rows, "models/" + id, Form::kPackedNames, 100);
    Servers::Get().Converge(learn, 0);
    state->messages = PredictMessages(rows, "models/" + id, Form::kPackedNames, 1);
    if (is_vw) state->peer.server->Rate(VwLines(rows, true), options.seconds);
  };
  return {
      {{row + "_p50", "us", Goal::kNone}, {row + "_p99", "us", Goal::kNone}},
      [state, prepare, &options](int rep, std::vector<Figure>& figures) {
        if (state->peer.server == nullptr) prepare();
        Latency ours;
        Latency theirs;
        InTurn(
            rep,
            [&] {
              ours = StreamPredict(Servers::Get().channel(Server::kReal), state->messages,
                                   options.seconds);
            },
            [&] { theirs = state->peer.server->OneAtATime(state->peer.lines, options.seconds); });
        Add(figures[0], ours.p50, theirs.p50);
        Add(figures[1], ours.p99, theirs.p99);
      }};
}

}  // namespace

std::vector<Benchmark> PeerBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks = {PredictOneBeside("echo", false, options)};
  if (options.vw.empty()) return benchmarks;
  benchmarks.push_back(PredictOneBeside("vw", true, options));
  // Clients use a table by themselves.
  for (const bool table : {true, false}) {
    for (const bool named_space : {false, true}) {
      benchmarks.push_back(
          LearnBesideVw({.name = absl::StrCat("learn_", table ? "table_" : "name_",
                                              named_space ? "named" : "hashed", "_beside_vw"),
                         .direction = table ? Goal::kAtLeast : Goal::kNone,
                         .goal = 8,
                         .form = table ? Form::kTableNames : Form::kPackedNames,
                         .words = true,
                         .named_space = named_space},
                        options));
    }
  }
  return benchmarks;
}

}  // namespace perceptrond::bench
