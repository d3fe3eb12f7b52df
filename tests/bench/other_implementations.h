// What other implementations reach on the data sets of the tables of docs/learners.md, and how ours
// is set to do what they do.
//
// Measured once, in the order of the files, by running them: Vowpal Wabbit 9.11, jubatus_core, SOL
// (LIBOL), scikit-learn, River 0.10, LIBLINEAR. Their figures are records; ours beside them are
// measured anew by each run of learners_table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/learner_runs.h"

namespace perceptrond {

// Percent: progressive, held out after one pass and after ten. Absent: not measured.
struct TheirFigures {
  std::optional<double> progressive;
  std::optional<double> held_out[2];
};

struct OtherImplementation {
  std::string name;
  // By DataSet::name.
  std::map<std::string, TheirFigures> figures;
};

// One that has a rule of ours.
struct Counterpart {
  OtherImplementation other;
  // The kind of rule, and ours at its settings. With a paper: none of our settings makes its rule,
  // and the paper's is run.
  testing::PaperRule ours;
  HowToMeasure how;
};

std::vector<Counterpart> Counterparts();
// Those that have none.
std::vector<OtherImplementation> OtherRules();

}  // namespace perceptrond
