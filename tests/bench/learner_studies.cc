#include "tests/bench/learner_studies.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "tests/bench/learner_runs.h"
#include "tests/bench/spread.h"
#include "tests/bench/table_rules.h"

namespace perceptrond {
namespace {

using testing::PaperRule;
namespace v1 = ::perceptron::v1;

void PrintWandering(const std::string& name, const std::vector<double>& errors) {
  const auto [least, greatest] = std::minmax_element(errors.begin(), errors.end());
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  std::printf("| %s | %.2f | %.2f | %.2f |\n", name.c_str(), *least,
              sum / static_cast<double>(errors.size()), *greatest);
}

void PrintPassesOf(const DataSet& data, const std::vector<PaperRule>& rules) {
  constexpr HowToMeasure kEveryPass{.every_pass = true};
  std::printf("\n### %s\n\n", data.title.c_str());
  std::puts("| learner | least % | mean % | greatest % |");
  std::puts("|---|---|---|---|");
  for (const PaperRule& rule : rules) {
    PrintWandering(NameOf(rule), MeasureOurs(rule, data, kEveryPass).held_out_by_pass);
    PrintWandering("– its paper, float64", MeasurePaper(rule, data, kEveryPass).held_out_by_pass);
  }
}

std::vector<PaperRule> Those(std::vector<PaperRule> rules,
                             const std::function<bool(const PaperRule&)>& wanted) {
  std::erase_if(rules, [&](const PaperRule& rule) { return !wanted(rule); });
  return rules;
}

void PrintOrdersOf(const DataSet& data, const std::vector<PaperRule>& rules) {
  constexpr int kOrders = 100;
  std::printf("\n### %s\n\n", data.title.c_str());
  ErrorSpreads::PrintHeading();
  for (const PaperRule& rule : rules) {
    ErrorSpreads ours;
    ErrorSpreads papers;
    DataSet shuffled = data;
    std::mt19937 random(1);
    for (int order = 0; order < kOrders; ++order) {
      std::shuffle(shuffled.train.begin(), shuffled.train.end(), random);
      ours.Add(MeasureOurs(rule, shuffled, {}));
      papers.Add(MeasurePaper(rule, shuffled, {}));
    }
    ours.PrintRow(NameOf(rule));
    papers.PrintRow("– its paper, float64");
  }
}

}  // namespace

void PrintPasses(const std::string& directory) {
  // The one rule that ends otherwise than its paper there but for its step's length.
  PrintPassesOf(LoadMnist(directory), Those(testing::PaperRules(), [](const PaperRule& rule) {
                  return rule.note == " (Gaussian, gamma = 1, budget 1000)";
                }));
  // Nothing separates it; of the rules that answer with their latest weights.
  PrintPassesOf(LoadElecInRandomOrder(directory),
                Those(testing::PaperRules(), [](const PaperRule& rule) {
                  return rule.learner == "perceptron" || rule.learner == "margin-perceptron" ||
                         rule.learner == "kernel-perceptron";
                }));
}

void PrintOrders(const std::string& directory) {
  const DataSet data = LoadMnist(directory);
  PrintOrdersOf(data, Those(TableRules(data), [](const PaperRule& rule) {
                  return rule.note == " (eta = 1, the default)";
                }));
}

}  // namespace perceptrond
