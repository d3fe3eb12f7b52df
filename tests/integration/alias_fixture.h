// What the tests of aliases share.
#pragma once

#include <string>

#include "perceptron/v1/alias_service.grpc.pb.h"

namespace perceptrond::testing {

// Has an alias name a model, and creates it if it does not exist.
inline ::perceptron::v1::UpdateAliasRequest Naming(const std::string& alias,
                                                   const std::string& model) {
  ::perceptron::v1::UpdateAliasRequest request;
  request.mutable_alias()->set_name("aliases/" + alias);
  request.mutable_alias()->set_model("models/" + model);
  request.mutable_update_mask()->add_paths("model");
  request.set_allow_missing(true);
  return request;
}

}  // namespace perceptrond::testing
