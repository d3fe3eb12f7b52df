// Models and their reports as text for the terminal.
#pragma once

#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// The space of the examples that clients send: for a composition that of its component models.
const perceptron::v1::FeatureSpace& ExampleSpace(const perceptron::v1::FeatureSpace& space);
// The space without its map: "dense, 4 dimensions", "the outputs of or (step), nand (score)".
std::string DescribeInput(const perceptron::v1::FeatureSpace& space);
// "polynomial of degree 2"; empty for the identity.
std::string DescribeMap(const perceptron::v1::FeatureMap& map);
// "dense, 4 dimensions".
std::string DescribeSpace(const perceptron::v1::FeatureSpace& space);
std::string DescribeState(perceptron::v1::ModelState state);
// FormatReport, each line indented by two and safe to print.
std::string DescribeReport(const perceptron::v1::ConvergenceReport& report);
// Settings, state and report, several lines.
std::string DescribeModel(const perceptron::v1::Model& model);

}  // namespace perceptrond::client
