// Flags that are times: --expire-after of `create` and `update`, --keep-predictions of `create`.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <string>

#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// Sets the duration from "30d", or a text of absl::ParseDuration such as "12h" or "1h30m".
// What is wrong with the flag's text; empty: nothing.
std::string SetDuration(const std::string& flag, const std::string& text,
                        google::protobuf::Duration* duration);

// The same for Model.expire_after.
std::string SetExpireAfter(const std::string& text, perceptron::v1::Model* model);

}  // namespace perceptrond::client
