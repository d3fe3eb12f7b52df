// Models and their reports as text for the terminal.
#pragma once

#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// "dense, 4 dimensions".
std::string DescribeSpace(const perceptron::v1::FeatureSpace& space);
std::string DescribeState(perceptron::v1::ModelState state);
// FormatReport, each line indented by two and safe to print.
std::string DescribeReport(const perceptron::v1::ConvergenceReport& report);
// Settings, state and report, several lines.
std::string DescribeModel(const perceptron::v1::Model& model);

}  // namespace perceptrond::client
