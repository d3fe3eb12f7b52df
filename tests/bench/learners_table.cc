// The tables of docs/learners.md: every learner on four real data sets, beside the rule as its
// paper prints it, in float64 (tests/support/papers.h), and beside other implementations
// (other_implementations.h); then the rules of several classes.
//
//   learners_table DIRECTORY-OF-THE-DATA-SETS
//   learners_table DIRECTORY-OF-THE-DATA-SETS mnist38 | ... | classes [ROW]...
//   learners_table DIRECTORY-OF-THE-DATA-SETS passes
//   learners_table DIRECTORY-OF-THE-DATA-SETS orders
//
// The second prints one of the tables; of the tables of two labels, with ROWs, only those of the
// product's rows. The third and the fourth print how much errors vary by themselves
// (learner_studies.h), from pass to pass and from one order of the examples to another.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/classes_table.h"
#include "tests/bench/learner_runs.h"
#include "tests/bench/learner_studies.h"
#include "tests/bench/other_implementations.h"
#include "tests/bench/table_rules.h"

namespace perceptrond {
namespace {

using testing::PaperRule;
namespace v1 = ::perceptron::v1;

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

void PrintCounterparts(const std::string& kind, const DataSet& data) {
  for (const Counterpart& one : Counterparts()) {
    if (one.ours.learner != kind || !Print(one.other, data)) continue;
    if (one.ours.paper == nullptr)
      Print("– ours" + (one.ours.note.empty() ? "" : ": `" + one.ours.note + "`"),
            MeasureOurs(one.ours, data, one.how));
    else
      Print("– that rule in float64", MeasurePaper(one.ours, data, one.how));
  }
}

using Names = std::vector<std::string>;

// The error of the rule that needs no learning, on a stream.
void PrintRepeatedLabel(const std::vector<testing::SvmExample>& stream) {
  size_t wrong = 0;
  for (size_t i = 1; i < stream.size(); ++i)
    wrong += stream[i].label != stream[i - 1].label ? 1 : 0;
  std::printf("\nRepeating the last label errs on %.2f %% of the stream.\n",
              Percent(static_cast<double>(wrong), stream.size()));
}

// All rows, or only the product's of these names.
void PrintTable(const DataSet& data, const Names& only) {
  std::printf("\n### %s\n\n", data.title.c_str());
  std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % | updates |");
  std::puts("|---|---|---|---|---|");
  const std::vector<PaperRule> rules = TableRules(data);
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!only.empty() && std::find(only.begin(), only.end(), NameOf(rules[i])) == only.end())
      continue;
    Print(NameOf(rules[i]), MeasureOurs(rules[i], data, {}));
    if (!only.empty()) continue;
    Print("– its paper, float64", MeasurePaper(rules[i], data, {}));
    if (i + 1 == rules.size() || rules[i + 1].learner != rules[i].learner)
      PrintCounterparts(rules[i].learner, data);
  }
  if (only.empty()) {
    for (const OtherImplementation& other : OtherRules()) Print(other, data);
  }
  if (data.learned > 0) PrintRepeatedLabel(data.train);
}

struct Table {
  const char* name;
  std::function<void(const std::string& directory, const Names& only)> print;
};

Table TableOf(const char* name, DataSet (*load)(const std::string& directory)) {
  return {name,
          [load](const std::string& from, const Names& only) { PrintTable(load(from), only); }};
}

Table WholeTable(const char* name, void (*print)(const std::string& directory)) {
  return {name, [print](const std::string& from, const Names&) { print(from); }};
}

const std::vector<Table>& Tables() {
  static const auto& tables = *new std::vector<Table>{
      TableOf("agaricus", &LoadAgaricus), TableOf("sms_tfidf", &LoadSms),
      TableOf("mnist38", &LoadMnist),     TableOf("elec2_shuffled", &LoadElecInRandomOrder),
      TableOf("elec2", &LoadElecByTime),  WholeTable("classes", &PrintClasses)};
  return tables;
}

// What is no table by itself.
const std::vector<Table>& Studies() {
  static const auto& studies = *new std::vector<Table>{
      WholeTable("passes", &PrintPasses), WholeTable("orders", [](const std::string& from) {
        PrintOrders(from);
        PrintClassOrders(from);
      })};
  return studies;
}

// All tables, or what has that name; says whether there is such.
bool PrintNamed(const std::string& what, const std::string& directory, const Names& only) {
  bool found = false;
  for (const auto* among : {&Tables(), &Studies()}) {
    for (const Table& table : *among) {
      if (what.empty() ? among != &Tables() : what != table.name) continue;
      table.print(directory, only);
      found = true;
    }
  }
  return found;
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<std::string> only(argv + std::min(argc, 3), argv + argc);
  if (argc > 1 && perceptrond::PrintNamed(argc > 2 ? argv[2] : "", argv[1], only)) return 0;
  std::fputs(
      "usage: learners_table DIRECTORY-OF-THE-DATA-SETS "
      "[agaricus|sms_tfidf|mnist38|elec2_shuffled|elec2|classes|passes|orders] [ROW]...\n",
      stderr);
  return 2;
}
