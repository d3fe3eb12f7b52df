// Analyses in words.
#pragma once

#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond {

// "analysis at revision 139 of all 6513 examples: separable, margin 0.2731 to 0.2731".
// A composition's analysis may also be out of date because its components have learned.
std::string DescribeAnalysis(const ::perceptron::v1::Analysis& analysis, bool composition = false);

}  // namespace perceptrond
