// The tables of docs/learners.md: every learner on four real data sets, beside the rule as its
// paper prints it, in float64 (tests/support/papers.h), and beside other implementations
// (other_implementations.h); then the rules of several classes.
//
//   learners_table DIRECTORY-OF-THE-DATA-SETS
//   learners_table DIRECTORY-OF-THE-DATA-SETS passes
//   learners_table DIRECTORY-OF-THE-DATA-SETS orders
//
// The second prints instead how much the error of the last weights wanders from pass to pass, where
// nothing separates the data; the third how much a difference the order makes to several classes.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/classes_table.h"
#include "tests/bench/learner_runs.h"
#include "tests/bench/other_implementations.h"

namespace perceptrond {
namespace {

using testing::PaperRule;
namespace v1 = ::perceptron::v1;

// With one more that no test compares: at its default step, far too long for pixels, float32 and
// float64 part ways.
std::vector<PaperRule> RulesByKind() {
  std::vector<PaperRule> rules = testing::PaperRules();
  rules.push_back({v1::LEARNER_KIND_LOGISTIC_REGRESSION, testing::Of<testing::PaperLogistic>(1.0),
                   [](v1::Learner&) {}, " (eta = 1, the default)"});
  std::stable_sort(rules.begin(), rules.end(),
                   [](const PaperRule& a, const PaperRule& b) { return a.kind < b.kind; });
  return rules;
}

std::string NameOf(const PaperRule& rule) { return testing::LearnerName(rule.kind) + rule.note; }

void Print(const std::string& name, const Figures& figures) {
  std::printf("| %s | %.2f | %.2f | %.2f | %llu / %llu |\n", name.c_str(), figures.progressive,
              figures.held_out[0], figures.held_out[1],
              static_cast<unsigned long long>(figures.updates[0]),
              static_cast<unsigned long long>(figures.updates[1]));
}

std::string Cell(const std::optional<double>& value) {
  if (!value.has_value()) return "–";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", *value);
  return text;
}

// Says whether it was measured on that data set.
bool Print(const OtherImplementation& other, const DataSet& data) {
  const auto found = other.figures.find(data.name);
  if (found == other.figures.end()) return false;
  const TheirFigures& figures = found->second;
  std::printf("| – %s | %s | %s | %s | – |\n", other.name.c_str(),
              Cell(figures.progressive).c_str(), Cell(figures.held_out[0]).c_str(),
              Cell(figures.held_out[1]).c_str());
  return true;
}

void PrintCounterparts(v1::LearnerKind kind, const DataSet& data) {
  for (const Counterpart& one : Counterparts()) {
    if (one.ours.kind != kind || !Print(one.other, data)) continue;
    if (one.ours.paper == nullptr)
      Print("– ours" + (one.ours.note.empty() ? "" : ": `" + one.ours.note + "`"),
            MeasureOurs(one.ours, data, one.how));
    else
      Print("– that rule in float64", MeasurePaper(one.ours, data, one.how));
  }
}

void PrintTable(const DataSet& data) {
  std::printf("\n### %s\n\n", data.title.c_str());
  std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % | updates |");
  std::puts("|---|---|---|---|---|");
  const std::vector<PaperRule> rules = RulesByKind();
  for (size_t i = 0; i < rules.size(); ++i) {
    Print(NameOf(rules[i]), MeasureOurs(rules[i], data, {}));
    Print("– its paper, float64", MeasurePaper(rules[i], data, {}));
    if (i + 1 == rules.size() || rules[i + 1].kind != rules[i].kind)
      PrintCounterparts(rules[i].kind, data);
  }
  for (const OtherImplementation& other : OtherRules()) Print(other, data);
}

void PrintWandering(const std::string& name, const std::vector<double>& errors) {
  const auto [least, greatest] = std::minmax_element(errors.begin(), errors.end());
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  std::printf("| %s | %.2f | %.2f | %.2f |\n", name.c_str(), *least,
              sum / static_cast<double>(errors.size()), *greatest);
}

// Of the rules that answer with their latest weights.
void PrintPasses(const DataSet& data) {
  constexpr HowToMeasure kEveryPass{.every_pass = true};
  std::puts("| learner | least % | mean % | greatest % |");
  std::puts("|---|---|---|---|");
  for (const PaperRule& rule : testing::PaperRules()) {
    if (rule.kind != v1::LEARNER_KIND_PERCEPTRON &&
        rule.kind != v1::LEARNER_KIND_MARGIN_PERCEPTRON &&
        rule.kind != v1::LEARNER_KIND_KERNEL_PERCEPTRON)
      continue;
    PrintWandering(NameOf(rule), MeasureOurs(rule, data, kEveryPass).held_out_by_pass);
    PrintWandering("– its paper, float64", MeasurePaper(rule, data, kEveryPass).held_out_by_pass);
  }
}

void PrintTables(const std::string& directory) {
  PrintTable(LoadAgaricus(directory));
  PrintTable(LoadSms(directory));
  PrintTable(LoadElecInRandomOrder(directory));
  PrintTable(LoadElecByTime(directory));
  PrintClasses(directory);
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && what != "passes" && what != "orders")) {
    std::fputs("usage: learners_table DIRECTORY-OF-THE-DATA-SETS [passes|orders]\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (what == "passes")
    perceptrond::PrintPasses(perceptrond::LoadElecInRandomOrder(directory));
  else if (what == "orders")
    perceptrond::PrintClassOrders(directory);
  else
    perceptrond::PrintTables(directory);
  return 0;
}
