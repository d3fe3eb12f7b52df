// Fields of messages that a newer client, server or file has, and this server does not know.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>

namespace perceptrond {

// The path from a message to the first one, itself included, that has such a field:
// ".learner.classes"; absent: there is none. O(messages).
std::optional<std::string> FindUnknownField(const google::protobuf::Message& message);

}  // namespace perceptrond
