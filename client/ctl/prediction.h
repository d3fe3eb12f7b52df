// Predictions as text and JSON: names of labels and classes, and the lines of `perceptronctl
// predict`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/format/format.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {

// The model's name of the label, else "-1" or "+1".
std::string LabelName(int label, const std::vector<std::string>& names);

// The part of `response` that belongs to one row. `error`: the row's validation error, or null.
perceptron::v1::PredictResponse AnswerToRow(const perceptron::v1::PredictResponse& response,
                                            int row, const perceptron::v1::RowError* error);

// The names of the columns of such lines.
std::string PredictionHeader(bool multiclass, const std::vector<std::string>& names,
                             bool has_probabilities, bool has_ids);

// A line for such an answer: label, score, distance ("-" while the weights are zero) and, for
// learners with probabilities, the probability of +1. "?" for a row with a validation error.
std::string PredictionLine(const perceptron::v1::PredictResponse& answer,
                           const std::vector<std::string>& names);
// The same as a line of JSON.
std::string PredictionJsonLine(const perceptron::v1::PredictResponse& answer);

// The line printed for a line of the input that has no prediction, being blank, a comment or malformed.
std::string NoPredictionLine();
perceptron::v1::PredictResponse NoPrediction(const std::string& model);

// The class number that stands for a label which is not one of the model.
inline constexpr int kUnknownClass = 10'000;

// The name of the class, else its number.
std::string ClassName(int number, const std::vector<std::string>& names);

// How labels of examples are read for the model.
LabelRule LabelRuleOf(const perceptron::v1::Model& model);

// The number of the class of the model that this is as a label of an example.
// INVALID_ARGUMENT: there is none; the message names it.
absl::StatusOr<int32_t> FindClass(const std::string& text, const perceptron::v1::Model& model);

// "3: setosa, versicolor, virginica", or the maximum and how new classes are added.
std::string DescribeClasses(const perceptron::v1::Model& model);

// The number of a model's classes that are known to exist.
int ClassesKnown(const perceptron::v1::Model& model);

// A line for the answer to one row of a multiclass model: class ("-" before there is one), score,
// margin to the next class ("-" while there is none) and, for learners with probabilities, the
// probability of the class. "?" for a row with a validation error.
std::string ClassPredictionLine(const perceptron::v1::PredictResponse& answer,
                                const std::vector<std::string>& names);

}  // namespace perceptrond::client
