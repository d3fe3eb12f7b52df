// What `perceptronctl explain` says of one example.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::client {

// A heading and a line for each contribution, with bars of '+' or '-' in proportion to their size.
// `where` names the example, `label_names` are the model's.
std::string DescribeExplanation(const std::string& where,
                                const perceptron::v1::Explanation& explanation, int64_t revision,
                                const std::vector<std::string>& label_names);

}  // namespace perceptrond::client
