// Models in words.
#pragma once

#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// "dense, 4 dimensions".
std::string DescribeSpace(const perceptron::v1::FeatureSpace& space);
std::string DescribeState(perceptron::v1::ModelState state);
// Settings, state and report, several lines. Figures that the report leaves out because they do not
// hold are left out.
std::string DescribeModel(const perceptron::v1::Model& model);

}  // namespace perceptrond::client
