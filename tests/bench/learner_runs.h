// What the tables of docs/learners.md measure: a learner, ours or its paper's, over a data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/paper_rules.h"
#include "tests/support/svmlight.h"

namespace perceptrond {

constexpr int kTablePasses = 10;

struct DataSet {
  std::string title;
  // As in its files' names.
  std::string name;
  // Learned for the progressive error and the updates.
  std::vector<testing::SvmExample> train;
  // Of a stream: its first `learned` examples are learned, anew, for the held-out errors. 0: all.
  size_t learned = 0;
  std::vector<testing::SvmExample> test;
  uint32_t dimension = 0;
};

struct Figures {
  // Percent.
  double progressive = 0;
  // After the first pass and after the last.
  double held_out[2] = {};
  uint64_t updates[2] = {};
  std::vector<double> held_out_by_pass;
};

double Percent(double part, size_t whole);

// Ours, at the rule's settings. Progressive: what the rule calls mistakes; with `by_answer`, wrong
// answers, where a tie is answered by the tie rule and may be right. With `classes` = 2 labels are
// classes 0 and 1. `every_pass`: fill held_out_by_pass. `until_converged`: ten passes, or as many
// as there are until one without a mistake.
struct HowToMeasure {
  bool by_answer = false;
  uint32_t classes = 0;
  bool every_pass = false;
  bool until_converged = false;
};
Figures MeasureOurs(const testing::PaperRule& rule, const DataSet& data, const HowToMeasure& how);
Figures MeasurePaper(const testing::PaperRule& rule, const DataSet& data, const HowToMeasure& how);

// Those of the tables, from the directory of the data sets. Throw std::runtime_error.
DataSet LoadAgaricus(const std::string& directory);
DataSet LoadSms(const std::string& directory);
// Handwritten 3 against 8; the files hold the pixels divided by 255.
DataSet LoadMnist(const std::string& directory);
// Shuffled, the last fifth held out.
DataSet LoadElecInRandomOrder(const std::string& directory);
// The last fifth, in time, held out.
DataSet LoadElecByTime(const std::string& directory);

}  // namespace perceptrond
