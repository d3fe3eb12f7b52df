// Convergence reports in words, for the terminal.
#pragma once

#include <string>

#include "core/words/convergence.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// ReportInWords, each line indented by two.
std::string DescribeReport(const perceptron::v1::Model& model);

}  // namespace perceptrond::client
