// The table of docs/learners.md: every learner on four real data sets, beside the rule as its paper
// prints it, in float64 (tests/support/papers.h).
//
//   learners_table DIRECTORY-OF-THE-DATA-SETS
//   learners_table DIRECTORY-OF-THE-DATA-SETS passes
//
// The second prints instead how much the error of the last weights wanders from pass to pass, where
// nothing separates the data.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/models.h"
#include "tests/support/paper_rules.h"
#include "tests/support/svmlight.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::Paper;
using testing::PaperRule;
using testing::SvmData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kPasses = 10;

struct DataSet {
  std::string name;
  std::vector<SvmExample> train;
  // Empty: a stream, of which only the first pass counts.
  std::vector<SvmExample> test;
  uint32_t dimension = 0;
};

struct Figures {
  double progressive = 0;
  double held_out[2] = {};
  uint64_t updates[2] = {};
  // If asked for.
  std::vector<double> held_out_by_pass;
};

double Percent(double part, size_t whole) { return 100 * part / static_cast<double>(whole); }

Figures MeasurePaper(const PaperRule& rule, const DataSet& data, bool every_pass = false) {
  const std::unique_ptr<Paper> paper = rule.paper(data.dimension + 1, /*offset=*/true);
  Figures figures;
  const auto augmented = [&](const SvmExample& example) {
    return testing::Augmented(example, data.dimension, true);
  };
  for (int pass = 1; pass <= kPasses; ++pass) {
    double wrong = 0;
    for (const SvmExample& example : data.train)
      wrong += paper->Learn(augmented(example), example.label) ? 1 : 0;
    paper->EndPass();
    if (pass == 1) figures.progressive = Percent(wrong, data.train.size());
    if (pass > 1 && pass < kPasses && !every_pass) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = paper->updates();
    const auto answers = paper->Answers();
    wrong = 0;
    for (const SvmExample& example : data.test) {
      const int predicted = answers(augmented(example)) > 0 ? 1 : -1;
      wrong += predicted != example.label ? 1 : 0;
    }
    if (data.test.empty()) break;
    figures.held_out[at] = Percent(wrong, data.test.size());
    figures.held_out_by_pass.push_back(figures.held_out[at]);
  }
  return figures;
}

Figures MeasureOurs(const PaperRule& rule, const DataSet& data, bool every_pass = false) {
  v1::Model settings = testing::DenseSettings("table", data.dimension);
  settings.mutable_learner()->set_kind(rule.kind);
  rule.settings(*settings.mutable_learner());
  LoneModel lone(settings);
  const Columns train(data.train);
  const Columns test(data.test);
  Figures figures;
  for (int pass = 1; pass <= kPasses; ++pass) {
    const LearnOutcome outcome = lone.Learn(train.batch(), pass);
    if (pass == 1)
      figures.progressive = Percent(static_cast<double>(outcome.mistakes), data.train.size());
    if (pass > 1 && pass < kPasses && !every_pass) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = lone.model->revision();
    if (data.test.empty()) break;
    const PredictOutcome predicted = lone.Predict(test.unlabelled());
    double wrong = 0;
    for (size_t i = 0; i < data.test.size(); ++i)
      wrong += predicted.labels[i] != data.test[i].label ? 1 : 0;
    figures.held_out[at] = Percent(wrong, data.test.size());
    figures.held_out_by_pass.push_back(figures.held_out[at]);
  }
  return figures;
}

std::string NameOf(const PaperRule& rule) { return testing::LearnerName(rule.kind) + rule.note; }

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
  for (const PaperRule& rule : testing::PaperRules()) {
    Print(NameOf(rule), MeasureOurs(rule, data), data.test.empty());
    Print("– its paper, float64", MeasurePaper(rule, data), data.test.empty());
  }
}

void PrintWandering(const std::string& name, const std::vector<double>& errors) {
  const auto [least, greatest] = std::minmax_element(errors.begin(), errors.end());
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  std::printf("| %s | %.2f | %.2f | %.2f |\n", name.c_str(), *least,
              sum / static_cast<double>(errors.size()), *greatest);
}

// Of the rules that answer with their latest weights.
void PrintPasses(const DataSet& data) {
  std::puts("| learner | least % | mean % | greatest % |");
  std::puts("|---|---|---|---|");
  for (const PaperRule& rule : testing::PaperRules()) {
    if (rule.kind != v1::LEARNER_KIND_PERCEPTRON &&
        rule.kind != v1::LEARNER_KIND_MARGIN_PERCEPTRON &&
        rule.kind != v1::LEARNER_KIND_KERNEL_PERCEPTRON)
      continue;
    PrintWandering(NameOf(rule), MeasureOurs(rule, data, true).held_out_by_pass);
    PrintWandering("– its paper, float64", MeasurePaper(rule, data, true).held_out_by_pass);
  }
}

DataSet Load(const std::string& directory, const std::string& name, const std::string& title) {
  SvmData train = testing::ReadSvmlight(directory + "/" + name + ".train");
  SvmData test = testing::ReadSvmlight(directory + "/" + name + ".test");
  const uint32_t dimension = std::max(train.dimension, test.dimension);
  return {title, std::move(train.examples), std::move(test.examples), dimension};
}

DataSet Shuffled(const SvmData& elec) {
  DataSet shuffled{
      "elec2 in random order: not separable, 6 features", elec.examples, {}, elec.dimension};
  std::mt19937 random(1);
  std::shuffle(shuffled.train.begin(), shuffled.train.end(), random);
  const size_t kept = shuffled.train.size() * 4 / 5;
  shuffled.test.assign(shuffled.train.begin() + static_cast<long>(kept), shuffled.train.end());
  shuffled.train.resize(kept);
  return shuffled;
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  using perceptrond::DataSet;
  const bool passes = argc == 3 && std::string(argv[2]) == "passes";
  if (argc != 2 && !passes) {
    std::fputs("usage: learners_table DIRECTORY-OF-THE-DATA-SETS [passes]\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  const perceptrond::testing::SvmData elec =
      perceptrond::testing::ReadSvmlight(directory + "/elec2.stream");
  const DataSet shuffled = perceptrond::Shuffled(elec);
  if (passes) {
    perceptrond::PrintPasses(shuffled);
    return 0;
  }
  perceptrond::PrintTable(
      perceptrond::Load(directory, "agaricus", "agaricus: separable, 127 indicator features"));
  perceptrond::PrintTable(
      perceptrond::Load(directory, "sms_tfidf", "sms_tfidf: sparse text, 7,856 features"));
  perceptrond::PrintTable(shuffled);
  perceptrond::PrintTable(
      {"elec2 in the order of time: a drifting stream", elec.examples, {}, elec.dimension});
  return 0;
}
