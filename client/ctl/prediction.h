// One prediction as a line of `perceptronctl predict`'s output.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/learning_service.pb.h"

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

}  // namespace perceptrond::client
