// The page's messages as JSON.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace perceptrond {

// Protobuf's JSON form, zeros included; 64-bit numbers are strings, absent `optional` fields are
// absent. "{}" for a message that has no JSON form: none of ours.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace perceptrond
