// Which names can be an axis of a picture: those of examples' features. What a feature map makes of
// them is listed among the weights, but no example has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// The names of the features whose product a model's weight of that name is: one, if it is none.
// `map`: the model's.
std::vector<std::string> FactorsOf(std::string_view weight, const perceptron::v1::FeatureMap& map);

// INVALID_ARGUMENT that says why the name is none of them, and which ones are: those of the rows,
// and of `weights`, the model's with their names, if it could be asked.
absl::Status CheckName(const std::string& name, const std::vector<Row>& rows,
                       const perceptron::v1::FeatureMap& map,
                       const perceptron::v1::Weights* weights);

}  // namespace perceptrond::client
