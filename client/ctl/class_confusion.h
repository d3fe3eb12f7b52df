// Which classes were taken for which, in words and in JSON.
#pragma once

#include <cstdint>
#include <map>
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

}  // namespace perceptrond::client
