// Names of labels and classes, and predictions as lines of `perceptronctl predict`'s output.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// The model's name for it, else "-1" or "+1".
std::string LabelName(int label, const std::vector<std::string>& names);

// The answer to one row of a message, as if that row had been asked alone. `error`: why it was
// refused, or null.
perceptron::v1::PredictResponse AnswerToRow(const perceptron::v1::PredictResponse& response,
                                            int row, const perceptron::v1::RowError* error);

// Such an answer in words: label, score, distance ("-" where there is no boundary yet), and where
// the learner has probabilities that of +1. "?" for a row that was refused.
std::string PredictionLine(const perceptron::v1::PredictResponse& answer,
                           const std::vector<std::string>& names);
// In protobuf's JSON form.
std::string PredictionJsonLine(const perceptron::v1::PredictResponse& answer);

// For labels of the input that the model has no class for.
inline constexpr int kNoClassOfTheModel = 10'000;

// The class's name, else its number.
std::string ClassName(int number, const std::vector<std::string>& names);

// "3: setosa, versicolor, virginica", or how many there may be and how new ones come up.
std::string DescribeClasses(const perceptron::v1::Model& model);

// The answer to one row (prediction.h) in words: class, score, margin ("-" where there is none
// yet), and where the learner has probabilities that of the class. "?" for a row that was refused,
// "-" for a class before there is one.
std::string ClassPredictionLine(const perceptron::v1::PredictResponse& answer,
                                const std::vector<std::string>& names);

}  // namespace perceptrond::client
