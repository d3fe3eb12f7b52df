// The table of several classes in docs/learners.md: each rule on handwritten digits, beside the
// rule as its paper prints it, in float64 (tests/support/multiclass_papers.h).
//
//   classes_table DIRECTORY-OF-THE-DATA-SETS
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/models.h"
#include "tests/support/multiclass_papers.h"
#include "tests/support/svmlight.h"

namespace perceptrond {
namespace {

using testing::MulticlassPaper;
using testing::SvmData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kPasses = 10;
constexpr int kClasses = 10;

struct Contender {
  v1::LearnerKind kind;
  std::function<std::unique_ptr<MulticlassPaper>(size_t classes, size_t dimension)> paper;
  std::function<void(v1::Learner&)> settings = [](v1::Learner&) {};
  std::string note = {};
};

template <typename P, typename... Args>
std::function<std::unique_ptr<MulticlassPaper>(size_t, size_t)> Of(Args... args) {
  return [=](size_t classes, size_t dimension) {
    return std::make_unique<P>(classes, dimension, args...);
  };
}

std::vector<Contender> Contenders() {
  const auto c = [](v1::Learner& learner) { learner.set_aggressiveness(0.1); };
  return {
      {v1::LEARNER_KIND_PERCEPTRON, Of<testing::PaperMulticlassPerceptron>()},
      {v1::LEARNER_KIND_AVERAGED_PERCEPTRON, Of<testing::PaperMulticlassAveraged>()},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE, Of<testing::PaperMulticlassPassiveAggressive>(0, 1.0)},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_I, Of<testing::PaperMulticlassPassiveAggressive>(1, 0.1),
       c, " (C = 0.1)"},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_II,
       Of<testing::PaperMulticlassPassiveAggressive>(2, 0.1), c, " (C = 0.1)"},
      {v1::LEARNER_KIND_AROW, Of<testing::PaperMulticlassArow>(1.0)},
      {v1::LEARNER_KIND_LOGISTIC_REGRESSION, Of<testing::PaperSoftmax>(0.1),
       [](v1::Learner& learner) { learner.set_step_size(0.1); }, " (eta = 0.1)"}};
}

// After the first pass and after the last.
struct Figures {
  double progressive = 0;
  double held_out[2] = {};
  uint64_t updates[2] = {};
};

double Percent(double part, size_t whole) { return 100 * part / static_cast<double>(whole); }

// What a run needs to be measured: a pass, which returns its mistakes, a class for each example
// held out, and the updates so far.
struct Run {
  std::function<double(int pass)> pass;
  std::function<std::vector<int>()> predict;
  std::function<uint64_t()> updates;
};

Figures Measure(const Run& run, const SvmData& train, const SvmData& test) {
  Figures figures;
  for (int pass = 1; pass <= kPasses; ++pass) {
    const double mistakes = run.pass(pass);
    if (pass == 1) figures.progressive = Percent(mistakes, train.examples.size());
    if (pass > 1 && pass < kPasses) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = run.updates();
    const std::vector<int> predicted = run.predict();
    double wrong = 0;
    for (size_t i = 0; i < predicted.size(); ++i)
      wrong += predicted[i] != test.examples[i].label ? 1 : 0;
    figures.held_out[at] = Percent(wrong, predicted.size());
  }
  return figures;
}

Figures MeasurePaper(const Contender& contender, const SvmData& train, const SvmData& test) {
  const uint32_t dimension = std::max(train.dimension, test.dimension);
  const std::unique_ptr<MulticlassPaper> paper = contender.paper(kClasses, dimension + 1);
  const auto pass = [&](int) {
    double wrong = 0;
    for (const SvmExample& example : train.examples)
      wrong += paper->Learn(testing::Augmented(example, dimension, true), example.label) ? 1 : 0;
    return wrong;
  };
  const auto predict = [&] {
    std::vector<int> predicted;
    for (const SvmExample& example : test.examples)
      predicted.push_back(paper->Predict(testing::Augmented(example, dimension, true)));
    return predicted;
  };
  return Measure({pass, predict, [&] { return paper->updates(); }}, train, test);
}

Figures MeasureOurs(const Contender& contender, const SvmData& train, const SvmData& test) {
  v1::Model settings = testing::DenseSettings("table", std::max(train.dimension, test.dimension));
  settings.mutable_learner()->set_kind(contender.kind);
  settings.mutable_learner()->mutable_classes()->set_max_classes(kClasses);
  contender.settings(*settings.mutable_learner());
  testing::LoneModel lone(settings);
  const testing::Columns rows(train.examples);
  const testing::Columns held_out(test.examples);
  const auto pass = [&](int number) {
    return static_cast<double>(lone.Learn(rows.batch(), number).mistakes);
  };
  const auto predict = [&] {
    const PredictOutcome outcome = lone.Predict(held_out.unlabelled());
    return std::vector<int>(outcome.labels.begin(), outcome.labels.end());
  };
  return Measure({pass, predict, [&] { return lone.model->revision(); }}, train, test);
}

void Print(const std::string& name, const Figures& figures) {
  std::printf("| %s | %.2f | %.2f | %.2f | %llu / %llu |\n", name.c_str(), figures.progressive,
              figures.held_out[0], figures.held_out[1],
              static_cast<unsigned long long>(figures.updates[0]),
              static_cast<unsigned long long>(figures.updates[1]));
}

void PrintTable(const std::string& directory) {
  const SvmData train = testing::ReadSvmlightClasses(directory + "/digits_mc.train");
  const SvmData test = testing::ReadSvmlightClasses(directory + "/digits_mc.test");
  std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % | updates |");
  std::puts("|---|---|---|---|---|");
  for (const Contender& contender : Contenders()) {
    std::string name = v1::LearnerKind_Name(contender.kind).substr(13);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    Print(name + contender.note, MeasureOurs(contender, train, test));
    Print("– its paper, float64", MeasurePaper(contender, train, test));
  }
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: classes_table DIRECTORY-OF-THE-DATA-SETS\n", stderr);
    return 2;
  }
  perceptrond::PrintTable(argv[1]);
  return 0;
}
