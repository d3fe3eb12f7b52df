// The flag --expire-after of `create` and `update`.
#pragma once

#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// Sets Model.expire_after from "30d", or a text of absl::ParseDuration such as "12h" or "1h30m".
// What is wrong with the text; empty: nothing.
std::string SetExpireAfter(const std::string& text, perceptron::v1::Model* model);

}  // namespace perceptrond::client
