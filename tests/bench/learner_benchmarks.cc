// The matrix of learners and feature maps, on packed rows without mistakes.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/learner/catalogue.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/floor.h"
#include "tests/bench/messages.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

constexpr size_t kRowsAMessage = 100;
// Some models take a millisecond for an example. Where updates are durable, messages wait for the
// disk: a model that is fast needs more of them.
constexpr uint64_t kMaxUnanswered = 32;
constexpr uint64_t kMaxUnansweredFast = 512;
// Rules that learn from right examples too may go on learning after these: the share of updates
// tells.
constexpr int kMaxRounds = 20;
constexpr int kMaxRoundsTiny = 2;

// Rates at both servers, in examples a second.
struct Rates {
  double ours = 0;
  double null = 0;
  // The part of our examples that were updates.
  double update_share = 0;
  // Processor nanoseconds an example of ours, and the server's part.
  double cost = 0;
  double server_cost = 0;

  // What does not depend on the reference.
  void AddTo(Figure& figure) const {
    figure.nulls.push_back(null);
    figure.update_shares.push_back(update_share);
    figure.costs.push_back(cost);
    figure.server_costs.push_back(server_cost);
  }
};

// A model and a stream of rows that it has learned.
class ModelRun {
 public:
  using MakeModel = std::function<v1::Model()>;
  using MakeRows = std::function<Rows()>;

  ModelRun(std::string id, MakeModel make_model, MakeRows make_rows, Form form = Form::kPacked,
           uint64_t max_unanswered = kMaxUnanswered)
      : id_(std::move(id)),
        make_model_(std::move(make_model)),
        make_rows_(std::move(make_rows)),
        form_(form),
        max_unanswered_(max_unanswered) {}

  Rates Measure(int rep, const Options& options) {
    if (real_.size() == 0) Prepare(options);
    StreamOptions run;
    run.seconds = options.seconds;
    run.max_unanswered = max_unanswered_;
    Servers& servers = Servers::Get();
    Rates rates;
    InTurn(
        rep,
        [&] {
          const StreamCost cost = MeasureStream(Server::kReal, real_, run);
          const auto examples = static_cast<double>(cost.outcome.examples);
          rates.ours = cost.outcome.rate();
          rates.update_share = static_cast<double>(cost.outcome.updates) / examples;
          rates.cost = 1e9 * cost.seconds_an_example();
          rates.server_cost = 1e9 * cost.server_seconds / examples;
        },
        [&] { rates.null = RunStream(servers.channel(Server::kNull), null_, run).rate(); });
    return rates;
  }
  // Creates the model and has it learn until nothing of a round changes it.
  void Prepare(const Options& options) {
    Servers& servers = Servers::Get();
    servers.CreateModel(id_, make_model_());
    real_ = LearnMessages(make_rows_(), "models/" + id_, form_, kRowsAMessage);
    real_.names = {};
    StreamOptions round;
    round.messages = real_.size();
    for (int i = 0; i < (options.tiny ? kMaxRoundsTiny : kMaxRounds); ++i) {
      if (RunStream(servers.channel(Server::kReal), real_, round).updates == 0) break;
    }
    null_ = real_;
  }

 private:
  const std::string id_;
  const MakeModel make_model_;
  const MakeRows make_rows_;
  const Form form_;
  const uint64_t max_unanswered_;
  Messages real_;
  Messages null_;
};

// The fields of the proto that the entry's name consists of.
v1::Learner LearnerOf(const CatalogueEntry& entry) {
  v1::Learner learner;
  const auto set = [&learner](const std::string& field) {
    const auto* const descriptor = learner.GetDescriptor()->FindFieldByName(field);
    learner.GetReflection()->MutableMessage(&learner, descriptor);
  };
  absl::string_view rule = entry.name;
  for (const char* const wrapper : {"averaged", "pocket", "voted"}) {
    if (absl::ConsumePrefix(&rule, absl::StrCat(wrapper, "-"))) set(wrapper);
  }
  set(absl::StrReplaceAll(rule, {{"-", "_"}}));
  return learner;
}

// Fewer weights a class for more classes, so that all weigh about as much.
uint32_t Bits(int classes) { return classes == 2 ? 20 : (classes == 10 ? 16 : 12); }

std::shared_ptr<ModelRun> LearnerRun(const CatalogueEntry& entry, int classes,
                                     const Options& options) {
  // Kernels take time in proportion to the examples that they keep.
  const bool few = options.tiny || entry.form == ::perceptrond::Form::kKernel;
  const size_t count = few ? (options.tiny ? 100 : 300) : (classes > 10 ? 1000 : 8000);
  const auto make_model = [&entry, classes] {
    v1::Model model;
    model.mutable_feature_space()->mutable_hashed()->set_bits(Bits(classes));
    *model.mutable_learner() = LearnerOf(entry);
    // The stream has no passes that could end; and where labels are random, the weight of the
    // constant input swings for hundreds of steps after all rows.
    if (entry.rule == RuleKind::kBatchPerceptron)
      model.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(kRowsAMessage);
    if (classes > 2)
      model.mutable_learner()->mutable_classes()->set_max_classes(static_cast<uint32_t>(classes));
    return model;
  };
  const auto make_rows = [classes, count] {
    Rows rows = SparseRows(count, 1U << Bits(classes), 1);
    return classes == 2 ? rows : WithClasses(std::move(rows), classes, 1);
  };
  const bool is_fast = entry.form == ::perceptrond::Form::kLinear && classes <= 10;
  return std::make_shared<ModelRun>(absl::StrCat("bench-", entry.name, "-", classes), make_model,
                                    make_rows, Form::kPacked,
                                    is_fast ? kMaxUnansweredFast : kMaxUnanswered);
}

// Beside the perceptron with as many classes, in the same repetition.
Benchmark BesidePerceptron(const CatalogueEntry& entry, int classes,
                           std::shared_ptr<ModelRun> perceptron, const Options& options) {
  // A vote or a kernel evaluates many vectors for each example.
  const bool has_goal = entry.form == ::perceptrond::Form::kLinear;
  const auto run = LearnerRun(entry, classes, options);
  return {{{absl::StrCat("learner_", entry.name, "_", classes), "examples/s",
            has_goal ? Goal::kAtLeast : Goal::kNone, 0.5}},
          [run, perceptron, &options](int rep, std::vector<Figure>& figures) {
            Rates ours;
            double reference = 0;
            InTurn(
                rep, [&] { ours = run->Measure(rep, options); },
                [&] { reference = perceptron->Measure(rep, options).ours; });
            Add(figures[0], ours.ours, reference);
            ours.AddTo(figures[0]);
          }};
}

// A model beside the null server alone.
Benchmark BesideNull(const std::string& name, const std::shared_ptr<ModelRun>& run,
                     const Options& options) {
  return {{{name, "examples/s", Goal::kNone}},
          [run, &options](int rep, std::vector<Figure>& figures) {
            const Rates rates = run->Measure(rep, options);
            Add(figures[0], rates.ours, rates.null);
            rates.AddTo(figures[0]);
          }};
}

constexpr uint32_t kFourierInputs = 64;

// Maps make hundreds or thousands of features of a row: a few thousand rows take as long.
std::vector<Benchmark> MapBenchmarks(const Options& options) {
  const size_t count = options.tiny ? 100 : 2000;
  const auto by_index = [count] { return SparseRows(count, 1U << 16, 1); };
  const auto words = [count] { return ZipfRows(count, 100'000, 1); };
  // Random features of vectors, as kernels are used.
  const auto vectors = [count] { return DenseRows(count, kFourierInputs, 1); };
  const auto hashed = [](const std::function<void(v1::FeatureMap&)>& set) {
    return [set] {
      v1::Model model;
      model.mutable_feature_space()->mutable_hashed()->set_bits(20);
      set(*model.mutable_feature_space()->mutable_map());
      return model;
    };
  };
  const auto polynomial = [](v1::FeatureMap& map) { map.mutable_polynomial()->set_degree(2); };
  const auto products = [](v1::FeatureMap& map) { map.mutable_products()->add_pairs(); };
  const auto fourier = [] {
    v1::Model model;
    v1::FeatureSpace& space = *model.mutable_feature_space();
    space.mutable_dense()->set_dimension(kFourierInputs);
    space.mutable_map()->mutable_fourier()->set_dimension(1000);
    space.mutable_map()->mutable_fourier()->set_gamma(0.01);
    return model;
  };
  const auto run = [](const char* id, const ModelRun::MakeModel& model,
                      const ModelRun::MakeRows& rows,
                      Form form) { return std::make_shared<ModelRun>(id, model, rows, form); };
  return {
      BesideNull("map_polynomial",
                 run("bench-polynomial", hashed(polynomial), by_index, Form::kPacked), options),
      BesideNull("map_products", run("bench-products", hashed(products), words, Form::kPackedNames),
                 options),
      BesideNull("map_fourier", run("bench-fourier", fourier, vectors, Form::kPacked), options)};
}

// Two components that have learned the rows.
Benchmark CompositionBenchmark(const Options& options) {
  const auto rows = [&options] { return SparseRows(options.tiny ? 100 : 8000, 1U << 16, 1); };
  const auto dense = [] {
    v1::Model model;
    model.mutable_feature_space()->mutable_dense()->set_dimension(1U << 16);
    return model;
  };
  const auto composition = [rows, dense, &options] {
    v1::Model model;
    for (const char* const id : {"bench-component-1", "bench-component-2"}) {
      ModelRun(id, dense, rows).Prepare(options);
      model.mutable_feature_space()->mutable_composition()->add_inputs()->set_model(
          absl::StrCat("models/", id));
    }
    return model;
  };
  return BesideNull("composition",
                    std::make_shared<ModelRun>("bench-composition", composition, rows), options);
}

}  // namespace

std::vector<Benchmark> LearnerBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks;
  for (const int classes : {2, 10, 1000}) {
    const auto perceptron = LearnerRun(*FindLearner("perceptron"), classes, options);
    benchmarks.push_back(
        BesideNull(absl::StrCat("learner_perceptron_", classes), perceptron, options));
    for (const CatalogueEntry& entry : Catalogue()) {
      if (entry.name == "perceptron" || (classes > 2 && !entry.has_classes())) continue;
      benchmarks.push_back(BesidePerceptron(entry, classes, perceptron, options));
    }
  }
  for (Benchmark& benchmark : MapBenchmarks(options)) benchmarks.push_back(std::move(benchmark));
  benchmarks.push_back(CompositionBenchmark(options));
  return benchmarks;
}

}  // namespace perceptrond::bench
