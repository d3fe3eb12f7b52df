#include "tests/bench/classes_table.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/spread.h"
#include "tests/support/learners.h"
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

struct DataSet {
  std::string name;
  uint32_t classes = 0;
  SvmData train;
  // Empty: a stream, of which only the first pass counts.
  SvmData test;
  uint32_t dimension() const { return std::max(train.dimension, test.dimension); }
};

struct Contender {
  std::string kind;
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
  const auto c = [](v1::Learner& learner) {
    perceptrond::testing::SetNumber(learner, "aggressiveness", 0.1);
  };
  return {{"perceptron", Of<testing::PaperMulticlassPerceptron>()},
          {"averaged-perceptron", Of<testing::PaperMulticlassAveraged>()},
          {"pocket-perceptron", Of<testing::PaperMulticlassPocket>(size_t{0})},
          {"pocket-perceptron", Of<testing::PaperMulticlassPocket>(size_t{1000}),
           [](v1::Learner& learner) {
             perceptrond::testing::SetCount(learner, "ratchet_examples", 1000);
           },
           " (ratchet over 1000)"},
          {"passive-aggressive", Of<testing::PaperMulticlassPassiveAggressive>(0, 1.0)},
          {"passive-aggressive-i", Of<testing::PaperMulticlassPassiveAggressive>(1, 0.1), c,
           " (C = 0.1)"},
          {"passive-aggressive-ii", Of<testing::PaperMulticlassPassiveAggressive>(2, 0.1), c,
           " (C = 0.1)"},
          {"arow", Of<testing::PaperMulticlassArow>(1.0)},
          {"logistic-regression", Of<testing::PaperSoftmax>(0.1),
           [](v1::Learner& learner) { perceptrond::testing::SetNumber(learner, "step_size", 0.1); },
           " (eta = 0.1)"},
          {"logistic-regression", Of<testing::PaperSoftmax>(1.0), [](v1::Learner&) {},
           " (eta = 1, the default)"}};
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

Figures Measure(const Run& run, const DataSet& data) {
  Figures figures;
  const std::vector<SvmExample>& test = data.test.examples;
  for (int pass = 1; pass <= kPasses; ++pass) {
    const double mistakes = run.pass(pass);
    if (pass == 1) figures.progressive = Percent(mistakes, data.train.examples.size());
    if (pass > 1 && pass < kPasses) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = run.updates();
    if (test.empty()) break;
    const std::vector<int> predicted = run.predict();
    double wrong = 0;
    for (size_t i = 0; i < predicted.size(); ++i) wrong += predicted[i] != test[i].label ? 1 : 0;
    figures.held_out[at] = Percent(wrong, predicted.size());
  }
  return figures;
}

Figures MeasurePaper(const Contender& contender, const DataSet& data) {
  const uint32_t dimension = data.dimension();
  const std::unique_ptr<MulticlassPaper> paper = contender.paper(data.classes, dimension + 1);
  const auto pass = [&](int) {
    double wrong = 0;
    for (const SvmExample& example : data.train.examples)
      wrong += paper->Learn(testing::Augmented(example, dimension, true), example.label) ? 1 : 0;
    return wrong;
  };
  const auto predict = [&] {
    std::vector<int> predicted;
    for (const SvmExample& example : data.test.examples)
      predicted.push_back(paper->Predict(testing::Augmented(example, dimension, true)));
    return predicted;
  };
  return Measure({pass, predict, [&] { return paper->updates(); }}, data);
}

Figures MeasureOurs(const Contender& contender, const DataSet& data) {
  v1::Model settings = testing::DenseSettings("table", data.dimension());
  perceptrond::testing::SetLearner(*settings.mutable_learner(), contender.kind);
  settings.mutable_learner()->mutable_classes()->set_max_classes(data.classes);
  contender.settings(*settings.mutable_learner());
  testing::LoneModel lone(settings);
  const testing::Columns rows(data.train.examples);
  const testing::Columns held_out(data.test.examples);
  const auto pass = [&](int number) {
    return static_cast<double>(lone.Learn(rows.batch(), number).mistakes);
  };
  const auto predict = [&] {
    const PredictOutcome outcome = lone.Predict(held_out.unlabelled());
    return std::vector<int>(outcome.labels.begin(), outcome.labels.end());
  };
  return Measure({pass, predict, [&] { return lone.model->revision(); }}, data);
}

std::string NameOf(const Contender& contender) {
  std::string name = testing::TestName(contender.kind);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  return name + contender.note;
}

void Print(const std::string& name, const Figures& figures, bool stream) {
  if (stream) {
    std::printf("| %s | %.2f | – | – | %llu |\n", name.c_str(), figures.progressive,
                static_cast<unsigned long long>(figures.updates[0]));
    return;
  }
  std::printf("| %s | %.2f | %.2f | %.2f | %llu / %llu |\n", name.c_str(), figures.progressive,
              figures.held_out[0], figures.held_out[1],
              static_cast<unsigned long long>(figures.updates[0]),
              static_cast<unsigned long long>(figures.updates[1]));
}

void PrintTable(const DataSet& data) {
  std::printf("\n### %s\n\n", data.name.c_str());
  std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % | updates |");
  std::puts("|---|---|---|---|---|");
  const bool stream = data.test.examples.empty();
  for (const Contender& contender : Contenders()) {
    Print(NameOf(contender), MeasureOurs(contender, data), stream);
    Print("– its paper, float64", MeasurePaper(contender, data), stream);
  }
}

void PrintOrders(const DataSet& data) {
  constexpr int kOrders = 20;
  ErrorSpreads::PrintHeading();
  for (const Contender& contender : Contenders()) {
    ErrorSpreads ours;
    ErrorSpreads papers;
    DataSet shuffled = data;
    std::mt19937 random(1);
    for (int order = 0; order < kOrders; ++order) {
      std::shuffle(shuffled.train.examples.begin(), shuffled.train.examples.end(), random);
      ours.Add(MeasureOurs(contender, shuffled));
      papers.Add(MeasurePaper(contender, shuffled));
    }
    ours.PrintRow(NameOf(contender));
    papers.PrintRow("– its paper, float64");
  }
}

// -1 and +1 as classes 0 and 1.
SvmData AsClasses(SvmData data) {
  for (SvmExample& example : data.examples) example.label = example.label > 0 ? 1 : 0;
  return data;
}

DataSet Digits(const std::string& directory) {
  return {"Several classes: digits, 10 classes, 64 features", 10,
          testing::ReadSvmlightClasses(directory + "/digits_mc.train"),
          testing::ReadSvmlightClasses(directory + "/digits_mc.test")};
}

}  // namespace

void PrintClasses(const std::string& directory) {
  PrintTable(Digits(directory));
  PrintTable({"Several classes: elec2 in the order of time as 2 classes",
              2,
              AsClasses(testing::ReadSvmlight(directory + "/elec2.stream")),
              {}});
}

void PrintClassOrders(const std::string& directory) { PrintOrders(Digits(directory)); }

}  // namespace perceptrond
