// The table of docs/learners.md: every learner on four real data sets, beside the rule as its paper
// prints it, in float64 (tests/support/papers.h).
//
//   learners_table DIRECTORY-OF-THE-DATA-SETS
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
#include "tests/support/papers.h"
#include "tests/support/papers_with_rows.h"
#include "tests/support/svmlight.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::Of;
using testing::Paper;
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

struct Contender {
  v1::LearnerKind kind;
  testing::MakePaper paper;
  std::function<void(v1::Learner&)> settings = [](v1::Learner&) {};
  std::string note = {};
};

// exp(-||x - z||^2)
double Gaussian(std::span<const double> x, std::span<const double> z) {
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += (x[i] - z[i]) * (x[i] - z[i]);
  return std::exp(-square);
}

// (1 + x . z)^2
double Quadratic(std::span<const double> x, std::span<const double> z) {
  const double base = 1 + std::inner_product(x.begin(), x.end(), z.begin(), 0.0);
  return base * base;
}

void SetQuadratic(v1::Learner& learner) {
  learner.mutable_kernel()->mutable_polynomial()->set_degree(2);
}

std::vector<Contender> Contenders() {
  return {
      {v1::LEARNER_KIND_PERCEPTRON, Of<testing::PaperPerceptron>()},
      {v1::LEARNER_KIND_AVERAGED_PERCEPTRON, Of<testing::PaperAveraged>()},
      {v1::LEARNER_KIND_POCKET, Of<testing::PaperPocket>()},
      {v1::LEARNER_KIND_MARGIN_PERCEPTRON, Of<testing::PaperAlma>(0.9)},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE, Of<testing::PaperPassiveAggressive>(0, 1.0)},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_I, Of<testing::PaperPassiveAggressive>(1, 0.1),
       [](v1::Learner& learner) { learner.set_aggressiveness(0.1); }, " (C = 0.1)"},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_II, Of<testing::PaperPassiveAggressive>(2, 0.1),
       [](v1::Learner& learner) { learner.set_aggressiveness(0.1); }, " (C = 0.1)"},
      {v1::LEARNER_KIND_AROW, Of<testing::PaperArow>(1.0)},
      {v1::LEARNER_KIND_LOGISTIC_REGRESSION, Of<testing::PaperLogistic>(0.1),
       [](v1::Learner& learner) { learner.set_step_size(0.1); }, " (eta = 0.1)"},
      {v1::LEARNER_KIND_POCKET, Of<testing::PaperRatchet>(size_t{1000}),
       [](v1::Learner& learner) { learner.set_ratchet_examples(1000); }, " (ratchet over 1000)"},
      {v1::LEARNER_KIND_BATCH_PERCEPTRON, Of<testing::PaperBatch>(uint64_t{0})},
      {v1::LEARNER_KIND_BATCH_PERCEPTRON, Of<testing::PaperBatch>(uint64_t{100}),
       [](v1::Learner& learner) { learner.set_mini_batch(100); }, " (mini-batch 100)"},
      {v1::LEARNER_KIND_VOTED_PERCEPTRON, Of<testing::PaperVoted>(size_t{1000})},
      {v1::LEARNER_KIND_KERNEL_PERCEPTRON, Of<testing::PaperForgetron>(&Gaussian, size_t{1000}),
       [](v1::Learner&) {}, " (Gaussian, gamma = 1)"},
      {v1::LEARNER_KIND_KERNEL_PERCEPTRON, Of<testing::PaperForgetron>(&Quadratic, size_t{1000}),
       &SetQuadratic, " (polynomial, degree 2)"}};
}

struct Figures {
  double progressive = 0;
  double held_out[2] = {};
  uint64_t updates[2] = {};
};

double Percent(double part, size_t whole) { return 100 * part / static_cast<double>(whole); }

Figures MeasurePaper(const Contender& contender, const DataSet& data) {
  const std::unique_ptr<Paper> paper = contender.paper(data.dimension + 1, /*offset=*/true);
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
    if (pass > 1 && pass < kPasses) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = paper->updates();
    const auto answers = paper->Answers();
    wrong = 0;
    for (const SvmExample& example : data.test) {
      const int predicted = answers(augmented(example)) > 0 ? 1 : -1;
      wrong += predicted != example.label ? 1 : 0;
    }
    if (!data.test.empty()) figures.held_out[at] = Percent(wrong, data.test.size());
    if (data.test.empty()) break;
  }
  return figures;
}

Figures MeasureOurs(const Contender& contender, const DataSet& data) {
  v1::Model settings = testing::DenseSettings("table", data.dimension);
  settings.mutable_learner()->set_kind(contender.kind);
  contender.settings(*settings.mutable_learner());
  LoneModel lone(settings);
  const Columns train(data.train);
  const Columns test(data.test);
  Figures figures;
  for (int pass = 1; pass <= kPasses; ++pass) {
    const LearnOutcome outcome = lone.Learn(train.batch(), pass);
    if (pass == 1)
      figures.progressive = Percent(static_cast<double>(outcome.mistakes), data.train.size());
    if (pass > 1 && pass < kPasses) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = lone.model->revision();
    if (data.test.empty()) break;
    const PredictOutcome predicted = lone.Predict(test.unlabelled());
    double wrong = 0;
    for (size_t i = 0; i < data.test.size(); ++i)
      wrong += predicted.labels[i] != data.test[i].label ? 1 : 0;
    figures.held_out[at] = Percent(wrong, data.test.size());
  }
  return figures;
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
  for (const Contender& contender : Contenders()) {
    std::string name = v1::LearnerKind_Name(contender.kind).substr(13);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
    Print(name + contender.note, MeasureOurs(contender, data), data.test.empty());
    Print("– its paper, float64", MeasurePaper(contender, data), data.test.empty());
  }
}

DataSet Load(const std::string& directory, const std::string& name, const std::string& title) {
  SvmData train = testing::ReadSvmlight(directory + "/" + name + ".train");
  SvmData test = testing::ReadSvmlight(directory + "/" + name + ".test");
  const uint32_t dimension = std::max(train.dimension, test.dimension);
  return {title, std::move(train.examples), std::move(test.examples), dimension};
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  using perceptrond::DataSet;
  if (argc != 2) {
    std::fputs("usage: learners_table DIRECTORY-OF-THE-DATA-SETS\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  perceptrond::PrintTable(
      perceptrond::Load(directory, "agaricus", "agaricus: separable, 127 indicator features"));
  perceptrond::PrintTable(
      perceptrond::Load(directory, "sms_tfidf", "sms_tfidf: sparse text, 7,856 features"));
  const perceptrond::testing::SvmData elec =
      perceptrond::testing::ReadSvmlight(directory + "/elec2.stream");
  DataSet shuffled{
      "elec2 in random order: not separable, 6 features", elec.examples, {}, elec.dimension};
  std::mt19937 random(1);
  std::shuffle(shuffled.train.begin(), shuffled.train.end(), random);
  const size_t kept = shuffled.train.size() * 4 / 5;
  shuffled.test.assign(shuffled.train.begin() + static_cast<long>(kept), shuffled.train.end());
  shuffled.train.resize(kept);
  perceptrond::PrintTable(shuffled);
  perceptrond::PrintTable(
      {"elec2 in the order of time: a drifting stream", elec.examples, {}, elec.dimension});
  return 0;
}
