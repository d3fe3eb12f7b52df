// The table of docs/learners.md about the learner auto: its errors over random orders of each data
// set, beside those of its members, each learning alone.
//
//   auto_table DIRECTORY-OF-THE-DATA-SETS [--orders N] [--members] [SET]...
//
// Errors are progressive: each example is answered, then learned, once. "best" is the member with
// the fewest errors over all orders, chosen in hindsight. The goal is a mean difference to it of at
// most 0.3 points, or two standard errors of the paired differences if that is more. --members
// prints each member's error instead. Exit code 1: a set misses the goal; 77: a set's file is absent.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/features/text.h"
#include "core/learner/catalogue.h"
#include "tests/support/svmlight.h"

namespace perceptrond {
namespace {

using testing::SvmData;
using testing::SvmExample;

struct Set {
  const char* name;
  const char* file;
  uint32_t classes;
};

constexpr Set kSets[] = {{"agaricus", "agaricus.train", 0},    {"sms_spam", "sms_spam.tsv", 0},
                         {"sms_tfidf", "sms_tfidf.train", 0},  {"elec2", "elec2.stream", 0},
                         {"mnist38", "mnist38.train", 0},      {"digits_mc", "digits_mc.train", 10},
                         {"iris_setosa", "iris_setosa.all", 0}};

// Messages as a text space with its defaults has them, but for the slots, which are numbered as they
// occur.
SvmData ReadMessages(const std::string& path) {
  constexpr uint32_t kSlots = 1U << TextOptions::kDefaultBits;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::map<uint32_t, uint32_t> numbers;
  TextReader reader;
  SvmData data;
  while (std::getline(file, line)) {
    const size_t tab = line.find('\t');
    std::vector<uint32_t> slots;
    std::vector<float> values;
    if (tab == std::string::npos ||
        reader.Read(absl::string_view(line).substr(tab + 1), TextOptions(), kSlots, kMaxBatchGrams,
                    slots, values) != ValidationCode::kNone)
      continue;
    std::map<uint32_t, float> row;
    for (size_t i = 0; i < slots.size(); ++i)
      row[numbers.emplace(slots[i], static_cast<uint32_t>(numbers.size())).first->second] =
          values[i];
    SvmExample example{line.compare(0, tab, "spam") == 0 ? 1 : -1, {}, {}};
    for (const auto& [index, value] : row) {
      example.indices.push_back(index);
      example.values.push_back(value);
    }
    data.examples.push_back(std::move(example));
  }
  data.dimension = static_cast<uint32_t>(numbers.size());
  return data;
}

SvmData Read(const Set& set, const std::string& path) {
  if (path.ends_with(".tsv")) return ReadMessages(path);
  return set.classes > 0 ? testing::ReadSvmlightClasses(path) : testing::ReadSvmlight(path);
}

// The percentage of wrong answers of a learner, a wrapped one by its predictions.
double Error(LearnerSettings settings, uint32_t classes, const SvmData& data,
             const std::vector<size_t>& order) {
  settings.classes = {classes, classes, {}};
  const bool wrapped = settings.wrapper != WrapperKind::kNone;
  const std::unique_ptr<Learner> learner = MakeLearner(settings, data.dimension);
  const DecisionRule decision{classes > 0, settings.tie_rule};
  std::vector<double> scores(learner->predictor().scores());
  uint64_t age = 0;
  uint64_t wrong = 0;
  for (const size_t i : order) {
    const SvmExample& example = data.examples[i];
    const Row row{example.indices.data(), example.values.data(), example.indices.size()};
    const Evaluation evaluation = learner->Evaluate(row, example.label);
    if (wrapped) {
      learner->predictor().Score(row, age, scores);
      wrong += decision.Evaluate(scores, example.label).mistake ? 1 : 0;
    } else {
      wrong += evaluation.mistake ? 1 : 0;
    }
    const Target target{example.label, 1, age++};
    if (evaluation.update && learner->CanUpdate(row, target, evaluation))
      learner->Update(row, target, evaluation);
  }
  return 100 * static_cast<double>(wrong) / static_cast<double>(order.size());
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Two standard errors of the mean.
double TwoErrors(const std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return n < 2 ? 0 : 2 * std::sqrt(squares / (n - 1) / n);
}

// Says whether the goal is met.
bool PrintSet(const Set& set, const SvmData& data, int orders, bool members) {
  LearnerSettings automatic;
  automatic.rule = RuleKind::kAuto;
  const std::vector<MemberVotes::Member> all = MakeLearner(automatic, 1)->member_votes()->Members();
  std::vector<double> ours;
  std::vector<std::vector<double>> theirs(all.size());
  std::mt19937 random(1);
  std::vector<size_t> order(data.examples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int n = 0; n < orders; ++n) {
    std::shuffle(order.begin(), order.end(), random);
    ours.push_back(Error(automatic, set.classes, data, order));
    for (size_t m = 0; m < all.size(); ++m)
      theirs[m].push_back(Error(all[m].settings, set.classes, data, order));
  }
  size_t best = 0;
  for (size_t m = 0; m < all.size(); ++m) {
    if (Mean(theirs[m]) < Mean(theirs[best])) best = m;
    if (members)
      std::printf("| %s | %s | %.2f |\n", set.name, all[m].name.c_str(), Mean(theirs[m]));
  }
  std::vector<double> differences = ours;
  for (size_t n = 0; n < differences.size(); ++n) differences[n] -= theirs[best][n];
  const double most = std::max(0.3, TwoErrors(differences));
  const bool met = Mean(differences) <= most;
  std::printf("| %s | %.2f | %.2f %s | %+.2f ± %.2f%s |\n", set.name, Mean(ours),
              Mean(theirs[best]), all[best].name.c_str(), Mean(differences), TwoErrors(differences),
              met ? "" : ", above the goal");
  return met;
}

int Run(const std::string& directory, int orders, bool members,
        const std::vector<std::string>& only) {
  bool met = true;
  bool absent = false;
  std::puts("| data set | auto % | best member % | difference ± 2 standard errors |");
  std::puts("|---|---|---|---|");
  for (const Set& set : kSets) {
    if (!only.empty() && std::find(only.begin(), only.end(), set.name) == only.end()) continue;
    const std::string path = directory + "/" + set.file;
    if (!std::filesystem::exists(path)) {
      std::fprintf(stderr, "skipped: no %s\n", path.c_str());
      absent = true;
      continue;
    }
    met &= PrintSet(set, Read(set, path), orders, members);
  }
  if (!met) return 1;
  return absent ? 77 : 0;
}

}  // namespace
}  // namespace perceptrond

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int orders = 20;
  bool members = false;
  std::vector<std::string> rest;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--orders") == 0 && i + 1 < argc) {
      orders = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--members") == 0) {
      members = true;
    } else {
      rest.emplace_back(argv[i]);
    }
  }
  if (rest.empty() || orders < 1) {
    std::fputs("usage: auto_table DIRECTORY-OF-THE-DATA-SETS [--orders N] [--members] [SET]...\n",
               stderr);
    return 2;
  }
  return perceptrond::Run(rest[0], orders, members, {rest.begin() + 1, rest.end()});
}
