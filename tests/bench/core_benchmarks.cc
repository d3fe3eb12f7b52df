// The core in process, without gRPC, beside a plain loop over the same arrays; and beside itself.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb_journal.h"
#include "core/model/model.h"
#include "core/settings/settings.h"
#include "perceptron/v1/model.pb.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/clock.h"
#include "tests/bench/floor.h"
#include "tests/bench/rows.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {
namespace {

constexpr size_t kRowsACall = 1000;
constexpr int kMostPasses = 1000;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

storage::ModelHeader AddModel(Journal& journal, uint32_t dimension) {
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/bench");
  header.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(dimension);
  header.mutable_model()->mutable_learner()->set_bias_input(0);
  FillDefaults(*header.mutable_model());
  Require(journal.Create(header));
  return header;
}

std::shared_ptr<Model> LoadModel(const storage::ModelHeader& header, Journal& journal) {
  auto model = Model::Load(header, journal, Model::Limits());
  Require(model.status());
  return *std::move(model);
}

std::vector<Rows> Calls(const Rows& rows) {
  std::vector<Rows> calls;
  for (size_t i = 0; i < rows.size(); i += kRowsACall)
    calls.push_back(rows.Slice(i, i + kRowsACall));
  return calls;
}

// One producer that learns the calls in turn.
class Learning {
 public:
  Learning(Model& model, const std::vector<Rows>& calls) : model_(model), calls_(calls) {}

  // Every call once; the mistakes.
  uint64_t Pass(const std::function<void()>& after_call = nullptr) {
    uint64_t mistakes = 0;
    for (const Rows& rows : calls_) {
      LearnCall call;
      call.batch = rows.batch();
      call.producer = &producer_;
      Require(model_.Learn(call, outcome_));
      mistakes += outcome_.mistakes;
      if (after_call) after_call();
    }
    return mistakes;
  }
  void Converge() {
    for (int pass = 0; pass < kMostPasses; ++pass) {
      if (Pass() == 0) return;
    }
    std::fputs("the rows are not learned\n", stderr);
    std::abort();
  }
  // Examples a second of passes for at least `seconds`.
  double Rate(double seconds) {
    size_t rows = 0;
    const Clock::time_point start = Clock::now();
    do {
      Pass();
      for (const Rows& call : calls_) rows += call.size();
    } while (Since(start) < seconds);
    return static_cast<double>(rows) / Since(start);
  }

 private:
  Model& model_;
  const std::vector<Rows>& calls_;
  Producer producer_{""};
  LearnOutcome outcome_;
};

// A converged model and its rows.
struct Converged {
  Converged(const Rows& rows, uint32_t dimension)
      : calls(Calls(rows)),
        model(LoadModel(AddModel(journal, dimension), journal)),
        learning(*model, calls) {
    learning.Converge();
    // Nobody commits here: updates that wait for it must be discarded.
    (void)model->ledger().TakePending();
  }

  const std::vector<Rows> calls;
  MemoryJournal journal;
  const std::shared_ptr<Model> model;
  Learning learning;
};

Benchmark BesidePlain(const char* name, double goal, uint32_t dimension, std::function<Rows()> make,
                      const Options& options) {
  struct State {
    std::unique_ptr<Converged> ours;
    std::unique_ptr<PlainWork> plain;
  };
  auto state = std::make_shared<State>();
  return {{{name, "examples/s", Goal::kAtLeast, goal}},
          [=, &options](int rep, std::vector<Figure>& figures) {
            if (state->ours == nullptr) {
              const Rows rows = make();
              state->ours = std::make_unique<Converged>(rows, dimension);
              state->plain =
                  std::make_unique<PlainWork>(rows, dimension, std::vector<std::string>());
            }
            double ours = 0;
            double plain = 0;
            InTurn(
                rep, [&] { ours = state->ours->learning.Rate(options.seconds); },
                [&] { plain = 1 / state->plain->Loop(options.seconds); });
            Add(figures[0], ours, plain);
          }};
}

Benchmark TwoThreads(const Options& options) {
  auto state = std::make_shared<std::unique_ptr<Converged>>();
  return {{{"core_two_threads", "examples/s", Goal::kAtLeast, 1.8}},
          [state, &options](int rep, std::vector<Figure>& figures) {
            if (*state == nullptr) {
              *state = std::make_unique<Converged>(
                  SparseRows(options.tiny ? 1000 : 8000, 1U << 20, 1), 1U << 20);
            }
            Converged& ours = **state;
            Learning other(*ours.model, ours.calls);
            double both = 0;
            double one = 0;
            const auto measure_both = [&] {
              double other_rate = 0;
              std::thread thread([&] { other_rate = other.Rate(options.seconds); });
              const double rate = ours.learning.Rate(options.seconds);
              thread.join();
              both = rate + other_rate;
            };
            InTurn(rep, measure_both, [&] { one = ours.learning.Rate(options.seconds); });
            Add(figures[0], both, one);
          }};
}

// Every example is a mistake, so that the journal holds all of them. From a closed journal: it is
// opened and read.
Benchmark Recovery(const Options& options) {
  return {{{"core_recovery", "examples/s", Goal::kAtLeast, 0.5}},
          [&options](int /*rep*/, std::vector<Figure>& figures) {
            const testing::TempDir dir;
            RocksDbJournal::Options at;
            at.directory = dir.path() + "/journal";
            auto journal = RocksDbJournal::Open(at);
            Require(journal.status());
            const storage::ModelHeader header = AddModel(**journal, 1U << 20);
            const Rows rows = MistakenRows(options.tiny ? 1 : 30, 1U << 20, 1);
            const std::vector<Rows> calls = Calls(rows);
            double learning_seconds = 0;
            {
              const std::shared_ptr<Model> model = LoadModel(header, **journal);
              Learning learning(*model, calls);
              Clock::time_point start = Clock::now();
              // Learning alone is timed, not the journal.
              learning.Pass([&] {
                learning_seconds += Since(start);
                JournalEntry entry = model->ledger().TakePending();
                entry.model_id = model->id();
                Require((*journal)->Commit({&entry, 1}, {.sync = false}).status());
                start = Clock::now();
              });
            }
            *journal = nullptr;
            const Clock::time_point start = Clock::now();
            journal = RocksDbJournal::Open(at);
            Require(journal.status());
            const uint64_t revision = LoadModel(header, **journal)->revision();
            const double replay_seconds = Since(start);
            if (revision != rows.size()) Require(absl::InternalError("not all were mistakes"));
            const auto examples = static_cast<double>(rows.size());
            Add(figures[0], examples / replay_seconds, examples / learning_seconds);
          }};
}

}  // namespace

std::vector<Benchmark> CoreBenchmarks(const Options& options) {
  const auto rows = [&options](size_t count) { return options.tiny ? 1000 : count; };
  return {
      BesidePlain(
          "core_sparse", 1, 1U << 20, [=] { return SparseRows(rows(8000), 1U << 20, 1); }, options),
      BesidePlain(
          "core_dense", 1, 784, [=] { return DenseRows(rows(1000), 784, 1); }, options),
      BesidePlain(
          "core_sparse_beyond_caches", 1.5, 1U << 24,
          [=] { return SparseRows(rows(40000), 1U << 24, 1); }, options),
      TwoThreads(options), Recovery(options)};
}

}  // namespace perceptrond::bench
