// Predictions as text and JSON: names of labels and classes, the lines of `perceptronctl predict`,
// and its summary.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/output.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {

// The model's name of the label, else "-1" or "+1".
std::string LabelName(int label, const std::vector<std::string>& names);

// The part of `response` that belongs to one row. `error`: the row's validation error, or null.
perceptron::v1::PredictResponse AnswerToRow(const perceptron::v1::PredictResponse& response,
                                            int row, const perceptron::v1::RowError* error);

// A line for such an answer: label, score, distance ("-" while the weights are zero) and, for
// learners with probabilities, the probability of +1. "?" for a row with a validation error.
std::string PredictionLine(const perceptron::v1::PredictResponse& answer,
                           const std::vector<std::string>& names);
// The same as a line of JSON.
std::string PredictionJsonLine(const perceptron::v1::PredictResponse& answer);

// The class number that stands for a label which is not a class of the model.
inline constexpr int kUnknownClass = 10'000;

// The name of the class, else its number.
std::string ClassName(int number, const std::vector<std::string>& names);

// The number of the class with this name, or of this number if classes have no names.
// INVALID_ARGUMENT: there is none; the message names it.
absl::StatusOr<int32_t> FindClass(const std::string& text, const std::vector<std::string>& names);

// "3: setosa, versicolor, virginica", or the maximum and how new classes are added.
std::string DescribeClasses(const perceptron::v1::Model& model);

// A line for the answer to one row of a multiclass model: class ("-" before there is one), score,
// margin to the next class ("-" while there is none) and, for learners with probabilities, the
// probability of the class. "?" for a row with a validation error.
std::string ClassPredictionLine(const perceptron::v1::PredictResponse& answer,
                                const std::vector<std::string>& names);

// Confusion matrix of a multiclass model, over rows with a label. A plain value.
class ClassConfusion {
 public:
  void Add(int actual, int predicted);
  uint64_t total() const { return total_; }
  uint64_t errors() const { return errors_; }
  double error() const { return static_cast<double>(errors_) / static_cast<double>(total_); }
  // Error rate of always predicting the most frequent class.
  double majority_error() const;

  // The errors, and the predictions for each class. Precondition: total() > 0.
  std::string Text(const std::vector<std::string>& names) const;
  // Adds errors, errorRate, majorityErrorRate and confusion, a list with an element for each pair
  // of classes that occurred: {"actual": number, "predicted": number, "count": "n"}, with names if
  // known.
  void AddTo(JsonObject& json, const std::vector<std::string>& names) const;

 private:
  uint64_t total_ = 0;
  uint64_t errors_ = 0;
  // Counts by actual, then predicted class.
  std::map<int, std::map<int, uint64_t>> counts_;
};

// Confusion matrix of a model of two labels, over rows with a label. A plain value.
struct Confusion {
  uint64_t true_positive = 0;
  uint64_t true_negative = 0;
  uint64_t false_positive = 0;
  uint64_t false_negative = 0;

  void Add(int actual, int predicted);
  uint64_t total() const;
  uint64_t errors() const { return false_positive + false_negative; }
  double error() const { return static_cast<double>(errors()) / static_cast<double>(total()); }
  // Error rate of always predicting the more frequent label.
  double majority_error() const;
};

// The margin of a data set: the smallest y s / ||w|| of its examples, negative if one is
// misclassified. A plain value.
class DataMargin {
 public:
  // Adds an example; `distance` is the signed distance in its answer. Absent: the margin is
  // unknown.
  void Add(int actual, std::optional<float> distance);
  // Absent if unknown or without examples.
  std::optional<float> value() const { return known_ ? smallest_ : std::nullopt; }

 private:
  std::optional<float> smallest_;
  bool known_ = true;
};

struct PredictSummary {
  std::vector<std::string> label_names;
  uint64_t examples = 0;
  // Examples with a validation error.
  uint64_t row_errors = 0;
  uint64_t bad_lines = 0;
  int64_t revision = 0;
  Confusion confusion;
  DataMargin margin;
  // For multiclass models, instead of confusion and margin.
  ClassConfusion classes;
  // The run ended before the end of the input.
  bool partial = false;

  std::string Text() const;
  std::string Json() const;
};

}  // namespace perceptrond::client
