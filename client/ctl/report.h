// Models and their convergence reports in words.
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
// The report alone, each line indented by two.
std::string DescribeReport(const perceptron::v1::Model& model);
// "pass 2: 150 examples, 3 mistakes (2.00%), 3 updates".
std::string DescribePass(const perceptron::v1::PassSummary& pass);

}  // namespace perceptrond::client
