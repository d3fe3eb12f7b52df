// The tables of docs/learners.md: every learner, at its defaults, on real data sets.
//
//   learners_table DIRECTORY-OF-THE-DATA-SETS [agaricus|sms_tfidf|mnist38|elec2|digits_mc [LEARNER]...]
//
// Progressive errors are those of the first pass, each example predicted before it is learned. Updates
// are those after one pass and after ten. Of a stream, in the order of time, the last fifth is held
// out; its held-out errors are those of another model, which learned the first four fifths.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/learner/catalogue.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/svmlight.h"

namespace perceptrond {
namespace {

using testing::SvmData;
using testing::SvmExample;

constexpr int kPasses = 10;

struct Source {
  const char* name;
  const char* title;
  // 0: two labels.
  uint32_t classes = 0;
  // One file, in the order of time.
  bool stream = false;
};

constexpr Source kSources[] = {
    {"agaricus", "agaricus: separable, 127 indicator features"},
    {"sms_tfidf", "sms_tfidf: sparse text, 7,856 features"},
    {"mnist38", "mnist38: separable with a small margin, 784 pixels from 0 to 1"},
    {"elec2", "elec2 in the order of time: a drifting stream", 0, true},
    {"digits_mc", "Several classes: digits, 10 classes, 64 features", 10}};

struct DataSet {
  Source source;
  std::vector<SvmExample> train;
  // Of a stream: what is learned for the held-out errors.
  std::vector<SvmExample> learned;
  std::vector<SvmExample> held_out;
  uint32_t dimension = 0;
};

DataSet Load(const Source& source, const std::string& directory) {
  const auto read = [&](const char* part) {
    const std::string path = directory + "/" + source.name + part;
    return source.classes > 0 ? testing::ReadSvmlightClasses(path) : testing::ReadSvmlight(path);
  };
  SvmData train = read(source.stream ? ".stream" : ".train");
  if (!source.stream) {
    SvmData test = read(".test");
    const uint32_t dimension = std::max(train.dimension, test.dimension);
    return {source, std::move(train.examples), {}, std::move(test.examples), dimension};
  }
  const auto cut = train.examples.begin() + static_cast<long>(train.examples.size() * 4 / 5);
  return {source,
          train.examples,
          {train.examples.begin(), cut},
          {cut, train.examples.end()},
          train.dimension};
}

double Percent(uint64_t part, size_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// After the first pass and after the last.
struct Figures {
  double progressive = 0;
  double held_out[2] = {};
  uint64_t updates[2] = {};
};

// A score of 0 is wrong for two labels, as in the model's own figures.
double HeldOutError(const testing::LoneModel& lone, const DataSet& data) {
  const testing::Columns rows(data.held_out);
  const PredictOutcome outcome = lone.Predict(rows.unlabelled());
  uint64_t wrong = 0;
  for (size_t i = 0; i < data.held_out.size(); ++i) {
    const int label = data.held_out[i].label;
    const bool right = data.source.classes > 0 ? outcome.labels[i] == label
                                               : static_cast<float>(label) * outcome.scores[i] > 0;
    if (!right) ++wrong;
  }
  return Percent(wrong, data.held_out.size());
}

Figures Measure(const std::string& learner, const DataSet& data,
                const std::vector<SvmExample>& examples) {
  perceptron::v1::Model settings = testing::DenseSettings("table", data.dimension);
  testing::SetLearner(*settings.mutable_learner(), learner);
  if (data.source.classes > 0)
    settings.mutable_learner()->mutable_classes()->set_max_classes(data.source.classes);
  testing::LoneModel lone(settings);
  const testing::Columns rows(examples);
  Figures figures;
  for (int pass = 1; pass <= kPasses; ++pass) {
    const uint64_t mistakes = lone.Learn(rows.batch(), pass).mistakes;
    if (pass == 1) figures.progressive = Percent(mistakes, examples.size());
    if (pass > 1 && pass < kPasses) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = lone.model->revision();
    figures.held_out[at] = HeldOutError(lone, data);
  }
  return figures;
}

void PrintTable(const DataSet& data, const std::vector<std::string>& only) {
  std::printf("\n### %s\n\n", data.source.title);
  std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % | updates |");
  std::puts("|---|---|---|---|---|");
  for (const CatalogueEntry& entry : Catalogue()) {
    if (!only.empty() && std::find(only.begin(), only.end(), entry.name) == only.end()) continue;
    if (data.source.classes > 0 && !entry.has_classes()) continue;
    const Figures figures = Measure(entry.name, data, data.train);
    const Figures held_out = data.source.stream ? Measure(entry.name, data, data.learned) : figures;
    std::printf("| %s | %.2f | %.2f | %.2f | %llu / %llu |\n", entry.name.c_str(),
                figures.progressive, held_out.held_out[0], held_out.held_out[1],
                static_cast<unsigned long long>(figures.updates[0]),
                static_cast<unsigned long long>(figures.updates[1]));
  }
  if (!data.source.stream) return;
  uint64_t changes = 0;
  for (size_t i = 1; i < data.train.size(); ++i)
    changes += data.train[i].label != data.train[i - 1].label ? 1 : 0;
  std::printf("\nRepeating the last label errs on %.2f %% of the stream.\n",
              Percent(changes, data.train.size()));
}

int Run(const std::string& directory, const std::string& name,
        const std::vector<std::string>& only) {
  bool found = false;
  for (const Source& source : kSources) {
    if (!name.empty() && name != source.name) continue;
    PrintTable(Load(source, directory), only);
    found = true;
  }
  return found ? 0 : 2;
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc > 1) {
    const std::vector<std::string> only(argv + std::min(argc, 3), argv + argc);
    if (perceptrond::Run(argv[1], argc > 2 ? argv[2] : "", only) == 0) return 0;
  }
  std::fputs(
      "usage: learners_table DIRECTORY-OF-THE-DATA-SETS "
      "[agaricus|sms_tfidf|mnist38|elec2|digits_mc [LEARNER]...]\n",
      stderr);
  return 2;
}
