// The rules of the tables of docs/learners.md.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/learner_runs.h"

namespace perceptrond {

// Those that the tests compare with their papers, and those that suit only some data, or only the
// tables, by kind.
std::vector<testing::PaperRule> TableRules(const DataSet& data);

// "kernel-perceptron (Gaussian, budget 100)".
std::string NameOf(const testing::PaperRule& rule);

}  // namespace perceptrond
