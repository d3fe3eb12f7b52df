// Examples a second over the wire, beside the floor and the null server; and microseconds from a
// question to its answer, one at a time.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/floor.h"
#include "tests/bench/messages.h"

namespace perceptrond::bench {
namespace {

// Words in a vocabulary.
constexpr uint32_t kWords = 100'000;
// An update in the journal: its indices and values, and its label.
constexpr size_t kUpdateBytes = kFeatures * (sizeof(uint32_t) + sizeof(float)) + 1;

enum class Work {
  // Learns rows that cause no mistake any more.
  kLearn,
  // Learns rows of which a tenth always are mistakes; these are durable.
  kErring,
  kPredict,
};

struct StreamCase {
  std::string name;
  // The least ratio of the rate to the floor.
  double goal;
  Work work = Work::kLearn;
  Form form = Form::kPacked;
  // Rows a message.
  size_t size = 100;
  // ZipfRows instead of SparseRows: for rows that are sent by name, and those compared with them.
  bool words = false;
  bool named_space = false;
};

const StreamCase kCases[] = {
    {.name = "learn_packed_100", .goal = 0.9},
    {.name = "learn_packed_1000", .goal = 0.9, .size = 1000},
    {.name = "learn_packed_100_erring", .goal = 0.6, .work = Work::kErring},
    {.name = "learn_packed_1000_erring", .goal = 0.6, .work = Work::kErring, .size = 1000},
    {.name = "learn_one", .goal = 0.95, .size = 1},
    {.name = "predict_stream_packed_100", .goal = 0.9, .work = Work::kPredict},
    // Words.
    {.name = "learn_index", .goal = 0.9, .words = true},
    {.name = "learn_name_hashed", .goal = 0.75, .form = Form::kPackedNames, .words = true},
    {.name = "learn_name_named",
     .goal = 0.75,
     .form = Form::kPackedNames,
     .words = true,
     .named_space = true},
    {.name = "learn_table_hashed", .goal = 0.75, .form = Form::kTableNames, .words = true},
    {.name = "learn_table_named",
     .goal = 0.75,
     .form = Form::kTableNames,
     .words = true,
     .named_space = true},
    {.name = "learn_nested_index", .goal = 0.8, .form = Form::kNested, .words = true},
};

// Calls both, in the other order every other repetition: what drifts does not always favour one.
template <typename Ours, typename Reference>
void InTurn(int rep, Ours ours, Reference reference) {
  if (rep % 2 == 1) reference();
  ours();
  if (rep % 2 == 0) reference();
}

void Add(Figure& figure, double value, double reference) {
  figure.values.push_back(value);
  figure.references.push_back(reference);
}

// Makes its rows and its model when first measured.
class StreamRun {
 public:
  // `options` must outlive it.
  StreamRun(const StreamCase& stream, const Options& options) : case_(stream), options_(options) {}

  void Measure(int rep, Figure& figure) {
    if (plain_ == nullptr) Prepare();
    StreamOptions run;
    run.seconds = options_.seconds;
    if (case_.work == Work::kPredict) run.call = Call::kPredictStream;
    StreamCost null;
    StreamCost cost;
    uint64_t commits = 0;
    const auto measure_ours = [&] {
      const uint64_t before = Servers::Get().JournalCommits();
      cost = MeasureStream(Server::kReal, messages_[0], run);
      commits = Servers::Get().JournalCommits() - before;
    };
    InTurn(rep, measure_ours, [&] { null = MeasureStream(Server::kNull, messages_[1], run); });
    const StreamOutcome& ours = cost.outcome;
    CheckMistakes(ours);
    const auto examples = static_cast<double>(ours.examples);
    Add(figure, ours.rate(), Floor(null, Extra(ours, commits)));
    figure.nulls.push_back(null.outcome.rate());
    figure.costs.push_back(1e9 * cost.seconds_an_example());
    figure.server_costs.push_back(1e9 * cost.server_seconds / examples);
    figure.bytes = messages_[0].bytes_an_example();
  }

 private:
  void Prepare() {
    const bool errs = case_.work == Work::kErring;
    const Rows rows = case_.words ? ZipfRows(options_.tiny ? 1000 : 8000, kWords, 1)
                                  : SparseRows(errs ? 0.1 : 0, options_.tiny);
    const std::string id = absl::StrCat("bench-", case_.name);
    Messages learn = LearnMessages(rows, "models/" + id, case_.form, case_.size);
    plain_ = MakePlain(rows, learn.names);
    Servers::Get().CreateModel(id, case_.named_space, /*offset=*/!errs);
    Servers::Get().Converge(learn, errs ? rows.batch().rows() / 10 : 0);
    learn.next = 0;
    if (case_.work == Work::kPredict)
      learn = PredictMessages(rows, "models/" + id, case_.form, case_.size);
    learn.names = {};
    messages_[0] = learn;
    messages_[1] = learn;
  }

  std::unique_ptr<PlainWork> MakePlain(const Rows& rows, std::vector<std::string> names) const {
    std::vector<uint32_t> table;
    if (case_.form == Form::kTableNames) {
      table = SlotsOfWords(kWords, kHashedWeights);
      // A named space numbers its weights as the table does.
      if (case_.named_space) std::iota(table.begin(), table.end(), 0U);
    }
    // Names of a hashed space are weighed where their slots are.
    const bool hashes = case_.form == Form::kPackedNames && !case_.named_space;
    return std::make_unique<PlainWork>(hashes ? InSlots(rows, kHashedWeights) : rows,
                                       kHashedWeights, std::move(names), std::move(table));
  }

  // A figure of another stream than the one that is named would mislead.
  void CheckMistakes(const StreamOutcome& outcome) const {
    const double share =
        static_cast<double>(outcome.mistakes) / static_cast<double>(outcome.examples);
    if (options_.tiny) return;
    if (case_.work == Work::kErring ? share > 0.05 && share < 0.11 : share == 0) return;
    std::fprintf(stderr, "%s: the model erred on %g of the examples\n", case_.name.c_str(), share);
    std::abort();
  }

  // Processor seconds an example of plain work beside which ours made its mistakes, in `commits`.
  double Extra(const StreamOutcome& ours, uint64_t commits) const {
    const double seconds = options_.seconds / 10;
    const double log = WriteLog(Servers::Get().directory(), ours.mistakes, kUpdateBytes, commits) *
                       static_cast<double>(ours.mistakes) / static_cast<double>(ours.examples);
    return plain_->Loop(seconds) + plain_->Lookups(seconds) + log;
  }

  const StreamCase case_;
  const Options& options_;
  std::unique_ptr<PlainWork> plain_;
  // To the real server and to the null server.
  Messages messages_[2];
};

// Predictions of a converged model.
Messages Predictions(const Options& options) {
  const Rows rows = SparseRows(0, options.tiny);
  const std::string id = "bench-latency";
  Messages learn = LearnMessages(rows, "models/" + id, Form::kPacked, 100);
  Servers::Get().CreateModel(id, /*named_space=*/false, /*offset=*/true);
  Servers::Get().Converge(learn, 0);
  return PredictMessages(rows, "models/" + id, Form::kPacked, 1);
}

}  // namespace

std::vector<Benchmark> StreamBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks;
  for (const StreamCase& stream : kCases) {
    const auto run = std::make_shared<StreamRun>(stream, options);
    benchmarks.push_back(
        {{{stream.name, "examples/s", Goal::kAtLeast, stream.goal}},
         [run](int rep, std::vector<Figure>& figures) { run->Measure(rep, figures[0]); }});
  }
  return benchmarks;
}

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
