// The summary of `perceptronctl predict`, as text and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/ctl/json.h"

namespace perceptrond::client {

// Of rows that have a label. A plain value.
class ClassConfusion {
 public:
  void Add(int actual, int predicted);
  uint64_t total() const { return total_; }
  uint64_t errors() const { return errors_; }
  double error() const { return static_cast<double>(errors_) / static_cast<double>(total_); }
  // What always predicting the most frequent class would get wrong.
  double majority_error() const;

  // total() is not 0. How many were wrong, and for each class what its examples were taken for.
  std::string Text(const std::vector<std::string>& names) const;
  // Adds errors, errorRate, majorityErrorRate and confusion: for each pair of classes that occurred
  // {"actual": number, "predicted": number, "count": "n"}, with names too where there are some.
  void AddTo(JsonObject& json, const std::vector<std::string>& names) const;

 private:
  uint64_t total_ = 0;
  uint64_t errors_ = 0;
  // By actual class, then predicted.
  std::map<int, std::map<int, uint64_t>> counts_;
};

// Predicted against actual; only of rows that have a label.
struct Confusion {
  uint64_t right_positive = 0;
  uint64_t right_negative = 0;
  uint64_t false_positive = 0;
  uint64_t false_negative = 0;

  void Add(int actual, int predicted);
  uint64_t total() const;
  uint64_t errors() const { return false_positive + false_negative; }
  double error() const { return static_cast<double>(errors()) / static_cast<double>(total()); }
  // What always predicting the more frequent label would get wrong.
  double majority_error() const;
};

// The margin of a data set (seed 000): the least y s / ||w|| of its examples, below 0 iff one lies
// on the wrong side.
class DataMargin {
 public:
  // The signed distance that an answer has; absent: none is known, and so no margin.
  void Add(int actual, std::optional<float> distance);
  // Absent before the first.
  std::optional<float> value() const { return known_ ? least_ : std::nullopt; }

 private:
  std::optional<float> least_;
  bool known_ = true;
};

struct PredictSummary {
  std::vector<std::string> label_names;
  uint64_t examples = 0;
  // Of those.
  uint64_t refused = 0;
  uint64_t bad_lines = 0;
  int64_t revision = 0;
  Confusion confusion;
  DataMargin margin;
  // Of models of several classes, in its place.
  ClassConfusion classes;
  // Not all of the input was predicted.
  bool partial = false;

  std::string Text() const;
  std::string Json() const;
};

}  // namespace perceptrond::client
