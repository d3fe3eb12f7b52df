#include "tests/bench/learner_runs.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::LoneModel;
using testing::Paper;
using testing::PaperRule;
using testing::SvmData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

// A learner on its way: what a table needs of ours and of a paper's alike.
struct Run {
  // Learns a pass, and says how many it got wrong.
  std::function<double(int pass)> pass;
  // How many of the test set it answers wrongly.
  std::function<double()> errors;
  std::function<uint64_t()> updates;
};

void Measure(const Run& run, const DataSet& data, const HowToMeasure& how, Figures& figures) {
  bool last = false;
  for (int pass = 1; !last; ++pass) {
    const double wrong = run.pass(pass);
    last = pass == kTablePasses || (how.until_converged && wrong == 0);
    if (pass == 1) figures.progressive = Percent(wrong, data.train.size());
    if (pass > 1 && !last && !how.every_pass) continue;
    const int at = pass == 1 ? 0 : 1;
    figures.updates[at] = run.updates();
    figures.held_out[at] = Percent(run.errors(), data.test.size());
    figures.held_out_by_pass.push_back(figures.held_out[at]);
  }
}

// Of a stream the held-out errors are those of another run, over its first part.
Figures MeasureBoth(const std::function<Run(const std::vector<SvmExample>&)>& start,
                    const DataSet& data, const HowToMeasure& how) {
  Figures figures;
  Measure(start(data.train), data, how, figures);
  if (data.learned == 0) return figures;
  const std::vector<SvmExample> part(data.train.begin(),
                                     data.train.begin() + static_cast<long>(data.learned));
  Figures held_out;
  Measure(start(part), data, how, held_out);
  std::copy(std::begin(held_out.held_out), std::end(held_out.held_out), figures.held_out);
  figures.held_out_by_pass = held_out.held_out_by_pass;
  return figures;
}

std::vector<SvmExample> AsClasses(std::vector<SvmExample> examples, uint32_t classes) {
  if (classes == 0) return examples;
  for (SvmExample& example : examples) example.label = example.label > 0 ? 1 : 0;
  return examples;
}

v1::Model Settings(const PaperRule& rule, const DataSet& data, const HowToMeasure& how) {
  v1::Model settings = testing::DenseSettings("table", data.dimension);
  perceptrond::testing::SetLearner(*settings.mutable_learner(), rule.learner);
  rule.settings(*settings.mutable_learner());
  if (how.classes > 0) settings.mutable_learner()->mutable_classes()->set_max_classes(how.classes);
  return settings;
}

template <typename Labels>
double Wrong(const Labels& labels, const std::vector<SvmExample>& examples) {
  double wrong = 0;
  for (size_t i = 0; i < examples.size(); ++i) wrong += labels[i] != examples[i].label ? 1 : 0;
  return wrong;
}

}  // namespace

double Percent(double part, size_t whole) { return 100 * part / static_cast<double>(whole); }

Figures MeasurePaper(const PaperRule& rule, const DataSet& data, const HowToMeasure& how) {
  const auto augmented = [&](const SvmExample& example) {
    return testing::Augmented(example, data.dimension, true);
  };
  const auto start = [&](const std::vector<SvmExample>& train) {
    const std::shared_ptr<Paper> paper = rule.paper(data.dimension + 1, /*offset=*/true);
    Run run;
    run.pass = [=](int) {
      double wrong = 0;
      for (const SvmExample& example : train) {
        const auto x = augmented(example);
        const bool answered_wrong = how.by_answer && (paper->Score(x) > 0) != (example.label > 0);
        const bool mistake = paper->Learn(x, example.label);
        wrong += (how.by_answer ? answered_wrong : mistake) ? 1 : 0;
      }
      paper->EndPass();
      return wrong;
    };
    run.errors = [=, &data] {
      const auto answers = paper->Answers();
      double wrong = 0;
      for (const SvmExample& example : data.test) {
        const double score = answers(augmented(example));
        const bool answered_wrong = (score > 0) != (example.label > 0);
        wrong += (how.by_answer ? answered_wrong : example.label * score <= 0) ? 1 : 0;
      }
      return wrong;
    };
    run.updates = [=] { return paper->updates(); };
    return run;
  };
  return MeasureBoth(start, data, how);
}

Figures MeasureOurs(const PaperRule& rule, const DataSet& data, const HowToMeasure& how) {
  const std::vector<SvmExample> test = AsClasses(data.test, how.classes);
  const Columns held_out(test);
  const auto start = [&](const std::vector<SvmExample>& examples) {
    const auto train =
        std::make_shared<const std::vector<SvmExample>>(AsClasses(examples, how.classes));
    const auto rows = std::make_shared<const Columns>(*train);
    const auto lone = std::make_shared<LoneModel>(Settings(rule, data, how));
    Run run;
    run.pass = [=](int pass) {
      const LearnOutcome outcome = lone->Learn(rows->batch(), pass);
      return how.by_answer ? Wrong(outcome.predicted, *train)
                           : static_cast<double>(outcome.mistakes);
    };
    run.errors = [=, &held_out, &test] {
      const PredictOutcome outcome = lone->Predict(held_out.unlabelled());
      if (how.by_answer || how.classes > 0) return Wrong(outcome.labels, test);
      double wrong = 0;
      for (size_t i = 0; i < test.size(); ++i)
        wrong += static_cast<float>(test[i].label) * outcome.scores[i] <= 0 ? 1 : 0;
      return wrong;
    };
    run.updates = [=] { return lone->model->revision(); };
    return run;
  };
  return MeasureBoth(start, data, how);
}

namespace {

DataSet Load(const std::string& directory, const std::string& name, const std::string& title) {
  SvmData train = testing::ReadSvmlight(directory + "/" + name + ".train");
  SvmData test = testing::ReadSvmlight(directory + "/" + name + ".test");
  const uint32_t dimension = std::max(train.dimension, test.dimension);
  return {title, name, std::move(train.examples), 0, std::move(test.examples), dimension};
}

}  // namespace

DataSet LoadAgaricus(const std::string& directory) {
  return Load(directory, "agaricus", "agaricus: separable, 127 indicator features");
}

DataSet LoadSms(const std::string& directory) {
  return Load(directory, "sms_tfidf", "sms_tfidf: sparse text, 7,856 features");
}

DataSet LoadMnist(const std::string& directory) {
  return Load(directory, "mnist38",
              "mnist38: separable with a small margin, 784 pixels from 0 to 1");
}

DataSet LoadElecByTime(const std::string& directory) {
  SvmData elec = testing::ReadSvmlight(directory + "/elec2.stream");
  DataSet stream{"elec2 in the order of time: a drifting stream",
                 "elec2",
                 std::move(elec.examples),
                 0,
                 {},
                 elec.dimension};
  stream.learned = stream.train.size() * 4 / 5;
  stream.test.assign(stream.train.begin() + static_cast<long>(stream.learned), stream.train.end());
  return stream;
}

DataSet LoadElecInRandomOrder(const std::string& directory) {
  DataSet shuffled = LoadElecByTime(directory);
  shuffled.title = "elec2 in random order: not separable, 6 features";
  shuffled.name = "elec2_shuffled";
  std::mt19937 random(1);
  std::shuffle(shuffled.train.begin(), shuffled.train.end(), random);
  const auto cut = shuffled.train.begin() + static_cast<long>(shuffled.learned);
  shuffled.test.assign(cut, shuffled.train.end());
  shuffled.train.resize(shuffled.learned);
  shuffled.learned = 0;
  return shuffled;
}

}  // namespace perceptrond
