// Models of several classes in words.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

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
