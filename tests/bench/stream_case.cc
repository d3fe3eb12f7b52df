#include "tests/bench/stream_case.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

// Of the words in a vocabulary; erring rows have more.
constexpr uint32_t kWords = 100'000;
// Of an update in the journal: its indices and values, and its label.
constexpr size_t kUpdateBytes = kFeatures * (sizeof(uint32_t) + sizeof(float)) + 1;
// Of what hashing adds to the mistakes: names that share a slot.
constexpr double kCollisions = 1.03;

}  // namespace

v1::Model ModelFor(Form form, bool named_space, uint32_t bits) {
  v1::Model model;
  v1::FeatureSpace& space = *model.mutable_feature_space();
  if (form == Form::kTexts) {
    space.mutable_text()->set_bits(bits);
    space.mutable_text()->set_max_words(1);
    space.mutable_text()->set_keep_norm(true);
  } else if (named_space) {
    space.mutable_named();
  } else {
    space.mutable_hashed()->set_bits(bits);
  }
  return model;
}

struct StreamRun::State {
  Rows rows;
  Messages messages[2];
  std::unique_ptr<PlainWork> plain;
  // Models that were created.
  int models = 0;

  Messages& of(Server server) { return messages[static_cast<int>(server)]; }
};

void StreamRates::AddTo(Figure& figure) const {
  figure.values.push_back(ours);
  figure.references.push_back(floor);
  figure.nulls.push_back(null);
  figure.costs.push_back(cost);
  figure.server_costs.push_back(server_cost);
  figure.bytes = bytes;
}

StreamRun::StreamRun(StreamCase stream, const Options& options)
    : case_(std::move(stream)), options_(options) {}
StreamRun::~StreamRun() = default;

Rows StreamRun::MakeRows() const {
  const bool first_pass = case_.work == Work::kFirstPass;
  const size_t rows = options_.tiny ? 1000 : (first_pass ? 30'000 : 8000);
  const uint32_t weights = 1U << case_.bits;
  const size_t erring_rows = std::min<size_t>(rows, weights / 120);
  const bool errs = case_.work == Work::kErring;
  if (case_.words) {
    return errs ? ErringZipfRows(rows, kWords, 1) : ZipfRows(rows, kWords, 1);
  }
  return errs ? ErringRows(erring_rows, weights, 1) : SparseRows(rows, weights, 1);
}

void StreamRun::CreateModel(const std::string& id) const {
  v1::Model model = ModelFor(case_.form, case_.named_space, case_.bits);
  if (case_.work == Work::kErring) model.mutable_learner()->set_bias_input(0);
  Servers::Get().CreateModel(id, model);
}

void StreamRun::Prepare() {
  if (state_ != nullptr) return;
  state_ = std::make_unique<State>();
  state_->rows = MakeRows();
  const std::string id = absl::StrCat("bench-", case_.name);
  const std::string model = "models/" + id;
  Messages learn = LearnMessages(state_->rows, model, case_.form, case_.size);
  // Names of a hashed space are weighed where their slots are.
  const bool hashes = case_.words && !case_.named_space && case_.form != Form::kPacked;
  const bool by_table = case_.form == Form::kTableNames || case_.form == Form::kTableCompact;
  std::vector<uint32_t> table;
  if (by_table) {
    const uint32_t last =
        *std::max_element(state_->rows.indices.begin(), state_->rows.indices.end());
    table = SlotsOfWords(last + 1, 1U << case_.bits);
    // A named space numbers its weights as the table does.
    if (case_.named_space) std::iota(table.begin(), table.end(), 0U);
  }
  state_->plain = std::make_unique<PlainWork>(
      hashes && !by_table ? InSlots(state_->rows, 1U << case_.bits) : state_->rows,
      1U << case_.bits, learn.names, std::move(table));
  if (case_.work != Work::kFirstPass) {
    CreateModel(id);
    // Of the rows, given twice, a tenth errs.
    const double erring = case_.work == Work::kErring
                              ? kCollisions * static_cast<double>(state_->rows.size()) / 10
                              : 0;
    Servers::Get().Converge(learn, static_cast<uint64_t>(erring));
  }
  learn.names = {};
  learn.next = 0;
  for (Messages& messages : state_->messages) {
    messages = case_.work == Work::kPredict
                   ? PredictMessages(state_->rows, model, case_.form, case_.size)
                   : learn;
    messages.names = {};
  }
}

void StreamRun::CheckMistakes(const StreamOutcome& outcome) const {
  const double share =
      static_cast<double>(outcome.mistakes) / static_cast<double>(outcome.examples);
  if (options_.tiny || case_.work == Work::kFirstPass) return;
  if (case_.work == Work::kErring ? share > 0.05 && share < 0.11 : share == 0) return;
  std::fprintf(stderr, "%s: the model erred on %g of the examples\n", case_.name.c_str(), share);
  std::abort();
}

double StreamRun::Extra(const StreamOutcome& ours, uint64_t commits) const {
  PlainWork& plain = *state_->plain;
  const double seconds = options_.seconds / 10;
  const double log = WriteLog(Servers::Get().directory(), ours.mistakes, kUpdateBytes, commits) *
                     static_cast<double>(ours.mistakes) / static_cast<double>(ours.examples);
  if (case_.work == Work::kFirstPass) return plain.FirstLoop() + plain.FirstLookups() + log;
  return plain.Loop(seconds) + plain.Lookups(seconds) + log;
}

StreamCost StreamRun::MeasureOurs(double& second_pass, uint64_t& commits) {
  Servers& servers = Servers::Get();
  StreamOptions run;
  run.seconds = options_.seconds;
  if (case_.work == Work::kPredict) run.call = Call::kPredictStream;
  Messages& messages = state_->of(Server::kReal);
  const bool first_pass = case_.work == Work::kFirstPass;
  std::string id;
  if (first_pass) {
    id = absl::StrCat("bench-", case_.name, "-", state_->models++);
    CreateModel(id);
    v1::LearnStreamRequest first;
    first.set_model("models/" + id);
    messages.first = ToBytes(first);
    run.seconds = 1e9;
    run.messages = messages.size();
  }
  const uint64_t before = servers.JournalCommits();
  const StreamCost cost = MeasureStream(Server::kReal, messages, run);
  commits = servers.JournalCommits() - before;
  if (first_pass) {
    second_pass = MeasureStream(Server::kReal, messages, run).outcome.rate();
    servers.DeleteModel(id);
  }
  return cost;
}

StreamRates StreamRun::Measure(int rep) {
  Prepare();
  StreamOptions run;
  run.seconds = options_.seconds;
  if (case_.work == Work::kPredict) run.call = Call::kPredictStream;
  if (case_.work == Work::kFirstPass) {
    run.seconds = 1e9;
    run.messages = state_->of(Server::kNull).size();
  }
  StreamRates rates;
  StreamCost null;
  StreamCost cost;
  uint64_t commits = 0;
  InTurn(
      rep, [&] { cost = MeasureOurs(rates.second_pass, commits); },
      [&] { null = MeasureStream(Server::kNull, state_->of(Server::kNull), run); });
  const StreamOutcome& ours = cost.outcome;
  CheckMistakes(ours);
  rates.ours = ours.rate();
  rates.cost = 1e9 * cost.seconds_an_example();
  rates.server_cost = 1e9 * cost.server_seconds / static_cast<double>(ours.examples);
  rates.bytes = state_->of(Server::kReal).bytes_an_example();
  rates.null = null.outcome.rate();
  rates.floor = Floor(null, Extra(ours, commits));
  return rates;
}

Benchmark StreamBenchmark(const StreamCase& stream, const Options& options) {
  const auto run = std::make_shared<StreamRun>(stream, options);
  return {{stream.figure()},
          [run](int rep, std::vector<Figure>& figures) { run->Measure(rep).AddTo(figures[0]); }};
}

}  // namespace perceptrond::bench
