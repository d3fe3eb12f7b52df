// The matrix of learners and feature maps, on packed rows without mistakes.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/floor.h"
#include "tests/bench/messages.h"
#include "tests/support/learners.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;
using LearnerForm = ::perceptrond::Form;

constexpr size_t kRowsAMessage = 100;
// Some models take a millisecond for an example. Where updates are durable, messages wait for the
// disk: a model that is fast needs more of them.
constexpr uint64_t kMaxUnanswered = 32;
constexpr uint64_t kMaxUnansweredFast = 512;
// Rules that learn from right examples too may go on learning after these: the share of updates
// tells.
constexpr int kMaxRounds = 20;
constexpr int kMaxRoundsTiny = 2;

// A model and a stream of rows that it has learned.
class ModelRun {
 public:
  ModelRun(std::string id, v1::Model model, std::function<Rows()> make_rows, bench::Form form,
           uint64_t max_unanswered = kMaxUnanswered)
      : id_(std::move(id)),
        model_(std::move(model)),
        make_rows_(std::move(make_rows)),
        form_(form),
        max_unanswered_(max_unanswered) {}

  // Ours; adds what does not depend on the reference to the figure, if there is one.
  double Measure(const Options& options, Figure* figure) {
    Prepare(options);
    const StreamCost cost = MeasureStream(Server::kReal, messages_[0], Run(options));
    if (figure != nullptr) {
      const auto examples = static_cast<double>(cost.outcome.examples);
      figure->update_shares.push_back(static_cast<double>(cost.outcome.updates) / examples);
      figure->costs.push_back(1e9 * cost.seconds_an_example());
      figure->server_costs.push_back(1e9 * cost.server_seconds / examples);
    }
    return cost.outcome.rate();
  }
  double MeasureNull(const Options& options) {
    Prepare(options);
    return RunStream(Servers::Get().channel(Server::kNull), messages_[1], Run(options)).rate();
  }
  // Creates the model and has it learn until nothing of a round changes it.
  void Prepare(const Options& options) {
    if (messages_[0].size() > 0) return;
    Servers& servers = Servers::Get();
    servers.CreateModel(id_, model_);
    messages_[0] = LearnMessages(make_rows_(), "models/" + id_, form_, kRowsAMessage);
    messages_[0].names = {};
    StreamOptions round;
    round.messages = messages_[0].size();
    for (int i = 0; i < (options.tiny ? kMaxRoundsTiny : kMaxRounds); ++i) {
      if (RunStream(servers.channel(Server::kReal), messages_[0], round).updates == 0) break;
    }
    messages_[1] = messages_[0];
  }

 private:
  StreamOptions Run(const Options& options) const {
    StreamOptions run;
    run.seconds = options.seconds;
    run.max_unanswered = max_unanswered_;
    return run;
  }

  const std::string id_;
  const v1::Model model_;
  const std::function<Rows()> make_rows_;
  const bench::Form form_;
  const uint64_t max_unanswered_;
  // To the real server and to the null server.
  Messages messages_[2];
};

std::shared_ptr<ModelRun> LearnerRun(const CatalogueEntry& entry, int classes,
                                     const Options& options) {
  // Kernels take time in proportion to the examples that they keep.
  const size_t count = options.tiny ? 100 : (entry.form == LearnerForm::kKernel ? 300 : 8000);
  // Fewer weights a class for more classes, so that all weigh about as much.
  const uint32_t bits = classes == 2 ? 20 : 16;
  v1::Model model;
  model.mutable_feature_space()->mutable_hashed()->set_bits(bits);
  testing::SetLearner(*model.mutable_learner(), entry.name);
  // The stream has no passes that could end; and where labels are random, the weight of the constant
  // input swings for hundreds of steps after all rows.
  if (entry.rule == RuleKind::kBatchPerceptron)
    model.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(kRowsAMessage);
  if (classes > 2)
    model.mutable_learner()->mutable_classes()->set_max_classes(static_cast<uint32_t>(classes));
  const auto make_rows = [classes, count, bits] {
    Rows rows = SparseRows(count, 1U << bits, 1);
    return classes == 2 ? rows : WithClasses(std::move(rows), classes, 1);
  };
  return std::make_shared<ModelRun>(
      absl::StrCat("bench-", entry.name, "-", classes), model, make_rows, bench::Form::kPacked,
      entry.form == LearnerForm::kLinear ? kMaxUnansweredFast : kMaxUnanswered);
}

// Beside the perceptron with as many classes, in the same repetition.
Benchmark BesidePerceptron(const CatalogueEntry& entry, int classes,
                           std::shared_ptr<ModelRun> perceptron, const Options& options) {
  // A vote or a kernel evaluates many vectors for each example.
  const Goal goal = entry.form == LearnerForm::kLinear ? Goal::kAtLeast : Goal::kNone;
  const auto run = LearnerRun(entry, classes, options);
  return {{{absl::StrCat("learner_", entry.name, "_", classes), "examples/s", goal, 0.5}},
          [run, perceptron, &options](int rep, std::vector<Figure>& figures) {
            double ours = 0;
            double reference = 0;
            InTurn(
                rep, [&] { ours = run->Measure(options, figures.data()); },
                [&] { reference = perceptron->Measure(options, nullptr); });
            Add(figures[0], ours, reference);
          }};
}

// A model beside the null server alone.
Benchmark BesideNull(const std::string& name, const std::shared_ptr<ModelRun>& run,
                     const Options& options) {
  return {{{name, "examples/s", Goal::kNone}},
          [run, &options](int rep, std::vector<Figure>& figures) {
            double ours = 0;
            double null = 0;
            InTurn(
                rep, [&] { ours = run->Measure(options, figures.data()); },
                [&] { null = run->MeasureNull(options); });
            Add(figures[0], ours, null);
          }};
}

// Maps make hundreds or thousands of features of a row: a few thousand rows take as long.
std::vector<Benchmark> MapBenchmarks(const Options& options) {
  constexpr uint32_t kFourierInputs = 64;
  const size_t count = options.tiny ? 100 : 2000;
  v1::Model hashed;
  hashed.mutable_feature_space()->mutable_hashed()->set_bits(20);
  v1::Model polynomial = hashed;
  polynomial.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  v1::Model products = hashed;
  products.mutable_feature_space()->mutable_map()->mutable_products()->add_pairs();
  // Random features of vectors, as kernels are used.
  v1::Model fourier;
  v1::FeatureSpace& space = *fourier.mutable_feature_space();
  space.mutable_dense()->set_dimension(kFourierInputs);
  space.mutable_map()->mutable_fourier()->set_dimension(1000);
  space.mutable_map()->mutable_fourier()->set_gamma(0.01);
  const auto row = [&options](const std::string& name, const v1::Model& model,
                              const std::function<Rows()>& rows, bench::Form form) {
    return BesideNull(name, std::make_shared<ModelRun>("bench-" + name, model, rows, form),
                      options);
  };
  return {row(
              "map_polynomial", polynomial, [=] { return SparseRows(count, 1U << 16, 1); },
              bench::Form::kPacked),
          row(
              "map_products", products, [=] { return ZipfRows(count, 100'000, 1); },
              bench::Form::kPackedNames),
          row(
              "map_fourier", fourier, [=] { return DenseRows(count, kFourierInputs, 1); },
              bench::Form::kPacked)};
}

}  // namespace

std::vector<Benchmark> LearnerBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks;
  for (const int classes : {2, 10}) {
    const auto perceptron = LearnerRun(*FindLearner("perceptron"), classes, options);
    benchmarks.push_back(
        BesideNull(absl::StrCat("learner_perceptron_", classes), perceptron, options));
    for (const CatalogueEntry& entry : Catalogue()) {
      if (entry.name == "perceptron" || (classes > 2 && !entry.has_classes())) continue;
      benchmarks.push_back(BesidePerceptron(entry, classes, perceptron, options));
    }
  }
  for (Benchmark& benchmark : MapBenchmarks(options)) benchmarks.push_back(std::move(benchmark));
  return benchmarks;
}

}  // namespace perceptrond::bench
